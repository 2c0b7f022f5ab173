use crate::{Grants, ToolFilter};

/// The tools that code may call, the tools that it may see, and its grants. Only
/// [`Policy::admit`](crate::Policy::admit) and [`Policy::admit_session`](crate::Policy::admit_session)
/// make a reach, and nothing changes it afterwards.
#[derive(Clone, Debug, PartialEq)]
pub struct Reach {
    callable: ToolFilter,
    visible: ToolFilter,
    view: ToolViewKind,
    grants: Grants,
}

/// The tools that a request wants its code to see.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ToolView {
    /// The tools that the code may call.
    #[default]
    Callable,
    /// Every tool of the policy, whichever of them the code may call.
    WholePolicy,
    /// These tools, by the rules of discovery. No other tool can be called.
    Discovery(ToolFilter),
}

/// The rule by which a reach shows tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToolViewKind {
    Callable,
    WholePolicy,
    Discovery,
}

impl Reach {
    /// Makes the reach of a request.
    ///
    /// `callable` and `grants` are what the policy and the request leave, `policy` is every tool of
    /// the policy. Inside another execution, `outer` is that one's reach: nothing beyond it is
    /// callable, visible or granted, and its discovery rules continue to apply.
    pub(crate) fn new(
        callable: ToolFilter,
        grants: Grants,
        view: ToolView,
        policy: &ToolFilter,
        outer: Option<&Reach>,
    ) -> Reach {
        let (kind, seen) = match (view, outer) {
            (ToolView::Discovery(tools), Some(outer)) => {
                (ToolViewKind::Discovery, Some(tools.and(&outer.visible)))
            }
            (ToolView::Discovery(tools), None) => (ToolViewKind::Discovery, Some(tools)),
            (ToolView::Callable | ToolView::WholePolicy, Some(outer))
                if outer.view == ToolViewKind::Discovery =>
            {
                (ToolViewKind::Discovery, Some(outer.visible.clone()))
            }
            (ToolView::WholePolicy, Some(outer)) => {
                (ToolViewKind::WholePolicy, Some(policy.clone().and(&outer.callable)))
            }
            (ToolView::WholePolicy, None) => (ToolViewKind::WholePolicy, Some(policy.clone())),
            (ToolView::Callable, _) => (ToolViewKind::Callable, None),
        };
        let callable = match (&seen, kind) {
            (Some(seen), ToolViewKind::Discovery) => callable.and(seen),
            (_, ToolViewKind::Callable | ToolViewKind::WholePolicy | ToolViewKind::Discovery) => {
                callable
            }
        };
        let (callable, grants) = match outer {
            Some(outer) => (callable.and(&outer.callable), outer.grants),
            None => (callable, grants),
        };
        let visible = seen.unwrap_or_else(|| callable.clone());
        let grants = callable.narrow_grants(grants);
        Reach { callable, visible, view: kind, grants }
    }

    /// Returns the tools that the code may call.
    pub fn callable(&self) -> &ToolFilter {
        &self.callable
    }

    /// Returns the tools that the code can see in listings and searches.
    pub fn visible(&self) -> &ToolFilter {
        &self.visible
    }

    /// Returns the grants that the code has.
    pub fn grants(&self) -> Grants {
        self.grants
    }

    /// Returns the tools whose servers have a name in the guest. Where discovery has rules, these
    /// are all visible tools, so that a call of a visible tool gets a clear refusal.
    pub fn named_in_guest(&self) -> &ToolFilter {
        match self.view {
            ToolViewKind::Discovery => &self.visible,
            ToolViewKind::Callable | ToolViewKind::WholePolicy => &self.callable,
        }
    }
}

#[cfg(test)]
mod tests;
