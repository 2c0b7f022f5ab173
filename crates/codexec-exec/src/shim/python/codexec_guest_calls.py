"""Pending tool calls, and how they fail.

A `Call` can be awaited, or waited for with `.result()`, from any thread and any event loop, any
number of times; the wire's lock guards it.
"""

from asyncio import _get_running_loop as running_loop

NOT_AWAITED = (
    "this tool call was not awaited: write `await {call}` or `{call}.result()` to get its result"
)


class ToolError(Exception):
    """A tool call that failed: `code`, `message`, `server` and `tool` say how and where."""

    def __init__(self, message="", code=None, server=None, tool=None):
        super().__init__(message)
        self.message = message
        self.code = code
        self.server = server
        self.tool = tool


# Guests and pickle find the class there; tracebacks show the bare name.
ToolError.__module__ = "__main__"


class NotAwaited(TypeError, AttributeError):
    """Both, so that `hasattr` keeps working on a call."""


NotAwaited.__module__ = "builtins"


class Call:
    """A request that is already on its way. `await` it, or wait for it with `.result()`."""

    __slots__ = ("_wire", "_text", "_result", "_futures", "_steps", "_is_seen", "__weakref__")

    def __init__(self, wire, ask_json, text):
        self._wire = wire
        self._text = text
        self._result = None
        self._futures = []
        self._steps = None
        self._is_seen = False
        wire.ask(ask_json, self)

    def done(self):
        return self._result is not None

    def result(self, timeout=None):
        """Waits for the result, at most `timeout` seconds."""
        outcome = self.outcome(timeout)
        if "Ok" in outcome:
            return outcome["Ok"]
        raise ToolError(**outcome["Err"])

    def outcome(self, timeout=None):
        if self._result is None:
            self._wire.wait(self.done, timeout)
            if self._result is None:
                raise TimeoutError(f"{self._text} did not answer within {timeout} seconds")
        self._is_seen = True
        return self._result

    def complaint(self):
        """Returns the error of a failed call that was never awaited, or None."""
        if self._is_seen:
            return None
        return f"{self._text} failed, and was never awaited: {self._result['Err']['message']}"

    def settle(self, result):
        self._result = result
        if not self._futures:
            if "Err" in result:
                self._wire.unseen_failures.append(self)
            return
        here = running_loop()
        for future in self._futures:
            loop = future.get_loop()
            if loop is here:
                _wake(future)
                continue
            try:
                loop.call_soon_threadsafe(_wake, future)
            except RuntimeError:
                pass  # That loop is closed: nobody waits there any more.
        self._futures.clear()

    def __await__(self):
        loop = running_loop()
        if self._result is None and loop is not None:
            future = loop.create_future()
            self._futures.append(future)
            self._wire.attach(loop)
            # Another thread may have settled the call before the future was in the list.
            if self._result is not None:
                _wake(future)
            yield from future
        return self.result()

    # Also a coroutine, so that `asyncio.create_task` and `asyncio.run` accept a call.
    def send(self, value):
        if self._steps is None:
            self._steps = self.__await__()
        return self._steps.send(value)

    def throw(self, *error):
        if self._steps is None:
            self._steps = self.__await__()
        return self._steps.throw(*error)

    def close(self):
        if self._steps is not None:
            self._steps.close()

    def __repr__(self):
        if self._result is None:
            state = "under way"
        else:
            state = "done" if "Ok" in self._result else "failed"
        return f"<tool call {self._text}, {state}: `await` it or call `.result()`>"

    def _refuse(self, *_):
        raise NotAwaited(NOT_AWAITED.format(call=self._text))

    __getitem__ = __setitem__ = __iter__ = __len__ = __bool__ = __contains__ = _refuse
    __getattr__ = _refuse


def _wake(future):
    if not future.done():
        future.set_result(None)
