/// An argument of an own function.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    pub name: &'static str,
    pub kind: ArgumentType,
    pub need: ArgumentNeed,
    pub listing: ArgumentListing,
    pub description: &'static str,
    /// How the command line spells the argument; `None` if no command takes it.
    pub option: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentType {
    Text,
    Texts,
    Integer,
    Boolean,
    Object,
    /// Any JSON value.
    Json,
    /// The name of a language that guests can have.
    Language,
    /// A word of this list.
    Choice(&'static [&'static str]),
}

/// The consequence if a caller leaves an argument out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentNeed {
    Optional,
    /// The tool's schema requires the argument; code and commands may leave it out.
    Expected,
    /// The function fails.
    Required,
}

/// The description of an argument for agents. Every word costs them tokens in every conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentListing {
    /// The tool's schema leaves the argument out; the function takes it all the same.
    Hidden,
    /// The tool's schema has the argument without its description.
    Listed,
    Described,
}

impl Argument {
    pub const fn new(
        name: &'static str,
        kind: ArgumentType,
        description: &'static str,
    ) -> Argument {
        let (need, listing) = (ArgumentNeed::Optional, ArgumentListing::Listed);
        Argument { name, kind, need, listing, description, option: None }
    }

    #[must_use]
    pub const fn required(mut self) -> Argument {
        self.need = ArgumentNeed::Required;
        self
    }

    pub(crate) const fn expected(mut self) -> Argument {
        self.need = ArgumentNeed::Expected;
        self
    }

    pub(crate) const fn hidden(mut self) -> Argument {
        self.listing = ArgumentListing::Hidden;
        self
    }

    pub(crate) const fn described(mut self) -> Argument {
        self.listing = ArgumentListing::Described;
        self
    }

    /// Replaces the description, for a function in which the argument means something else.
    pub(crate) const fn meaning(mut self, description: &'static str) -> Argument {
        self.description = description;
        self
    }

    pub(crate) const fn option(mut self, option: &'static str) -> Argument {
        self.option = Some(option);
        self
    }
}
