import importlib.util
import array
import os
import select
import signal
import socket
import tempfile
import textwrap
import time
import unittest

from test_guest import guest
from test_host import SECONDS_TO_RUN, Host, Ran, frame


class Reply:
    """The result of one cell."""

    def __init__(self, ending, out, err, images):
        self.ending = ending
        self.out = out
        self.err = err
        self.images = images

    @property
    def value(self):
        assert "returned" in self.ending, (self.ending, self.err)
        return self.ending["returned"]

    @property
    def threw(self):
        assert "threw" in self.ending, (self.ending, self.err)
        return self.ending["threw"]


class Session(Host):
    """A session's guest, from the host's side."""

    def __enter__(self):
        self.connection, theirs = socket.socketpair()
        outputs = [os.pipe(), os.pipe()]
        self.pid = os.fork()
        if self.pid == 0:
            self._become_guest(self.connection, theirs, outputs, tempfile.mkdtemp())
        theirs.close()
        for _, write_end in outputs:
            os.close(write_end)
        self.outputs = [read_end for read_end, _ in outputs]
        self.inbox = bytearray()
        self.ran = Ran()
        self.number = 0
        job = {"language": "python", "code": "", "input": None, "args": [], "is_session": True}
        job.update(servers=self.servers, memory_bytes=512 << 20)
        self.connection.sendall(frame({"start": job}))
        return self

    def __exit__(self, *_):
        self.connection.close()
        for output in self.outputs:
            os.close(output)
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        os.waitpid(self.pid, 0)

    def begin(self, code, input=None, args=()):
        self.number += 1
        cell = {"number": self.number, "key": f"key {self.number}", "input": input}
        cell["code"] = textwrap.dedent(code)
        cell["args"] = list(args)
        self.connection.sendall(frame({"cell": cell}))

    def send(self, code, input=None, args=()):
        self.begin(code, input, args)
        return self.end()

    def interrupt(self):
        self.connection.sendall(frame("interrupt"))
        os.kill(self.pid, signal.SIGINT)

    def until(self, is_enough):
        deadline = time.monotonic() + SECONDS_TO_RUN
        while not is_enough():
            assert time.monotonic() < deadline, f"the guest hangs: {self.ran.frames}"
            if select.select([self.connection], [], [], 0.2)[0]:
                chunk = self.connection.recv(1 << 16)
                if not chunk:
                    raise EOFError
                self.inbox += chunk
                self._read_frames(self.inbox, self.ran, self.connection, [])

    def end(self):
        self.until(lambda: self.ran.named("cell_ended"))
        frames, self.ran.frames = self.ran.frames, []
        ended = frames.pop()["cell_ended"]
        assert ended["key"] == f"key {self.number}"
        images = [said["image"] for said in frames]
        out, err = (self.waiting(output) for output in self.outputs)
        return Reply(ended["ending"], out, err, images)

    def with_own_output(self, code):
        """Sends a cell with its own pipes; returns the output of the earlier pipes and of the new
        ones."""
        pipes = [os.pipe(), os.pipe()]
        fds = array.array("i", [write for _, write in pipes])
        cell = {"number": self.number + 1, "key": f"key {self.number + 1}", "input": None}
        cell.update(code=textwrap.dedent(code), args=[])
        self.number += 1
        beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)]
        self.connection.sendmsg([frame({"cell": cell})], beside)
        for fd in fds:
            os.close(fd)
        reply = self.end()
        assert "returned" in reply.ending, reply.ending
        texts = [self.waiting(read) for read, _ in pipes]
        for read, _ in pipes:
            os.close(read)
        return reply.out, *texts

    def waiting(self, output):
        """Returns what is in a pipe now: everything written before the end of the cell."""
        text = b""
        while select.select([output], [], [], 0)[0]:
            chunk = os.read(output, 1 << 16)
            if not chunk:
                break
            text += chunk
        return text.decode()

    def until_written(self, text):
        """Waits for this text on stdout."""
        written = b""
        while text not in written.decode():
            assert select.select([self.outputs[0]], [], [], SECONDS_TO_RUN)[0], written
            written += os.read(self.outputs[0], 1 << 16)


def needs(*modules):
    missing = [name for name in modules if not importlib.util.find_spec(name)]
    return unittest.skipIf(missing, f"not installed: {missing}")


class Cells(unittest.TestCase):
    def check(self, *cells):
        with Session(guest) as session:
            for code, expected in cells:
                self.assertEqual(session.send(code).value, expected, code)

    def test_everything_stays(self):
        self.check(
            ("import math as m\nx = 1\ndef f(): return x\nclass C: y = 2", None),
            ("x = 5\n[f(), C().y, m.floor(1.5)]", [5, 2, 1]),
            ("def f(): return 'new'\nf()", "new"),
            ("import pickle\npickle.loads(pickle.dumps(C())).y", 2),
            ("__name__", "__main__"),
        )

    def test_one_event_loop_for_all(self):
        self.check(
            ("import asyncio\nq = asyncio.Queue()\nawait q.put(1)\nloop = asyncio.get_running_loop()", None),
            ("async def work():\n  await asyncio.sleep(0.01)\n  return 7\nt = asyncio.create_task(work())\nawait q.get()", 1),
            ("await t", 7),
            ("loop is asyncio.get_event_loop()", True),
            ("asyncio.get_event_loop().run_until_complete(asyncio.sleep(0, 'by hand'))", "by hand"),
            ("loop.close()", None),
            ("loop = asyncio.get_event_loop()\nawait asyncio.sleep(0, 'a new one')", "a new one"),
            ("async def own(): return 3\nasyncio.run(own())", 3),
            ("work()", 7),
            ("await asyncio.sleep(0, asyncio.get_running_loop() is loop)", True),
        )

    def test_tasks_go_on_between_cells(self):
        with Session(guest) as session:
            first = session.send(
                """
                import asyncio
                async def tell():
                    await asyncio.sleep(0.01)
                    print("told", flush=True)
                    await asyncio.sleep(100)
                t = asyncio.create_task(tell())
                await asyncio.sleep(0)
                """
            )
            # On a busy machine, the task may have printed before the cell ended.
            if "told" not in first.out:
                session.until_written("told")
            self.assertEqual(session.send("t.done()").value, False)

    def test_a_task_that_exits_takes_nothing_with_it(self):
        with Session(guest) as session:
            session.send("import asyncio, sys\nasync def bad():\n  await asyncio.sleep(0.01)\n  sys.exit(3)\nt = asyncio.create_task(bad())\nawait asyncio.sleep(0)")
            ran = session.send("x = 1\nawait asyncio.sleep(1)\nx")
            self.assertIn(ran.ending, ({"exited": 3}, {"returned": 1}))
            self.assertEqual(session.send("x").value, 1)

    def test_each_cell_has_its_own_output(self):
        with Session(guest) as session:
            session.send(
                """
                import asyncio, subprocess, threading
                go, done = threading.Event(), threading.Event()
                def run():
                    go.wait()
                    print("of a thread")
                    done.set()
                threading.Thread(target=run).start()
                async def tell():
                    while not go.is_set():
                        await asyncio.sleep(0.01)
                    print("of a task")
                t = asyncio.get_event_loop().create_task(tell())
                p = subprocess.Popen("read x; echo of a process", shell=True, stdin=-1)
                """
            )
            late, out, err = session.with_own_output(
                """
                go.set()
                done.wait()
                await t
                p.communicate(b"x")
                print("of the cell")
                own = threading.Thread(target=print, args=["of its thread"])
                own.start()
                own.join()
                await asyncio.to_thread(print, "of its helper")
                subprocess.run(["echo", "of its process"])
                """
            )
            own = "of the cell\nof its thread\nof its helper\nof its process\n"
            self.assertEqual((out, err), (own, ""))
            self.assertEqual(sorted(late.splitlines()), ["of a process", "of a task", "of a thread"])

    def test_threads_go_on_between_cells(self):
        with Session(guest) as session:
            session.send("import threading\ngo = threading.Event()\ndef run():\n  go.wait()\n  print('from a thread', flush=True)\nthreading.Thread(target=run).start()")
            if "from a thread" not in session.send("go.set()").out:
                session.until_written("from a thread")
            self.assertEqual(session.send("1").value, 1)

    def test_a_failure_keeps_what_came_before_it(self):
        with Session(guest) as session:
            self.assertEqual(session.send("a = 1\nraise ValueError('x')").threw["message"], "ValueError: x")
            self.assertEqual(session.send("a").value, 1)
            self.assertEqual(session.send("a = (").threw["code"], "SYNTAX_ERROR")
            self.assertEqual(session.send("a").value, 1)

    def test_tracebacks_show_the_lines_of_their_cells(self):
        with Session(guest) as session:
            session.send("def f():\n    return 1/0  # first")
            session.send("def f2():\n    return f()  # second")
            threw = session.send("x = 1\nf2()  # third").threw
            self.assertEqual(threw["at"], {"line": 2, "column": 1})
            for text in ('"<cell 1>", line 2', "# first", "# second", '"<cell 3>", line 2', "# third"):
                self.assertIn(text, threw["stack"])
            self.assertNotIn("codexec", threw["stack"])
            self.assertEqual(session.send("1 +* 2").threw["at"], {"line": 1, "column": 4})

    def test_input_and_arguments_are_the_cells(self):
        with Session(guest) as session:
            code = "import sys\n[input, sys.argv[1:]]"
            self.assertEqual(session.send(code, {"n": 1}, ["a"]).value, [{"n": 1}, ["a"]])
            self.assertEqual(session.send(code).value, [None, []])
            self.assertEqual(session.send("input = 'mine'\ninput", "given").value, "mine")
            self.assertEqual(session.send("input").value, "mine")
            self.assertEqual(session.send("input", "given").value, "given")

    def test_exit_ends_the_cell_only(self):
        with Session(guest) as session:
            ran = session.send("x = 1\nimport sys\nsys.exit(3)")
            self.assertEqual(ran.ending, {"exited": 3})
            self.assertIn("the session and its variables are still there", ran.err)
            self.assertEqual(session.send("exit()").ending, {"returned": None})
            ran = session.send("sys.exit('why')")
            self.assertEqual((ran.ending, ran.err.splitlines()[0]), ({"exited": 1}, "why"))
            self.assertEqual(session.send("await __import__('asyncio').sleep(0)\nsys.exit(4)").ending, {"exited": 4})
            self.assertEqual(session.send("[x, sys.stdin.closed]").value, [1, False])

    def test_os_exit_ends_the_session(self):
        with Session(guest) as session:
            with self.assertRaises(EOFError):
                session.send("import os\nos._exit(0)")

    def test_output_is_whole_when_the_end_is_said(self):
        with Session(guest) as session:
            ran = session.send("import sys\nsys.stdout.write('no line end')\nprint('e', file=sys.stderr)\n1")
            self.assertEqual((ran.out, ran.err, ran.value), ("no line end", "e\n", 1))
            self.assertEqual(session.send("2").out, "")

    def test_tools_work_in_every_cell(self):
        with Session(guest) as session:
            call = "r = await tools.github.x(a=1)\nr"
            first = session.send(call).value
            self.assertEqual(session.send(call).value, first)
            self.assertEqual(session.send("tools.github.y(a=2).result()").value["args"], {"a": 2})
            self.assertEqual(len(session.ran.asks), 3)

    def test_calls_that_nobody_awaits_are_waited_for(self):
        with Session(guest) as session:
            session.send("c = tools.github.x(a=1)\nNone")
            self.assertEqual(session.send("c.done()").value, True)

    def test_modules_that_were_just_written_are_found(self):
        with Session(guest) as session:
            session.send("open('one.py', 'w').write('x = 1')")
            self.assertEqual(session.send("import one\none.x").value, 1)
            session.send("open('two.py', 'w').write('x = 2')")
            self.assertEqual(session.send("import two\ntwo.x").value, 2)

    def test_packages_of_the_session_stand_behind_the_standard_library_and_before_others(self):
        with Session(guest) as session:
            path = session.send("import sys\nsys.path").value
            at, standard = path.index("/box/packages/python"), os.path.dirname(os.__file__)
            self.assertLess(path.index(standard), at, path)
            self.assertFalse(any("-packages" in folder for folder in path[:at]), path)

    def test_memory_that_cannot_be_had(self):
        with Session(guest) as session:
            self.assertEqual(session.send("x = 1\nbytes(1 << 60)").threw["code"], "MEMORY_LIMIT")
            self.assertEqual(session.send("x").value, 1)

    @needs("matplotlib")
    def test_figures_belong_to_their_cell(self):
        with Session(guest) as session:
            draw = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nNone"
            self.assertEqual(len(session.send(draw).images), 1)
            self.assertEqual(len(session.send("1").images), 0)
            self.assertEqual(len(session.send(draw + "\nplt.figure()\nNone").images), 2)
            self.assertEqual(session.send("plt.get_fignums()").value, [])


class Interrupts(unittest.TestCase):
    def check_stops(self, code):
        with Session(guest) as session:
            session.send("import asyncio, time, threading\nkept = 1")
            session.begin("kept = 2\nprint('runs', flush=True)\n" + textwrap.dedent(code))
            session.until_written("runs")
            session.interrupt()
            self.assertEqual(session.end().ending, "interrupted", code)
            after = session.send("await asyncio.sleep(0.02)\nkept")
            self.assertEqual((after.value, after.out, after.err), (2, "", ""), code)

    def test_ses_3_whatever_a_cell_does_it_can_be_stopped(self):
        self.check_stops("while True: pass")
        self.check_stops("time.sleep(100)")
        self.check_stops("await asyncio.sleep(100)")
        self.check_stops("while True: await asyncio.sleep(0)")
        self.check_stops("await asyncio.sleep(0)\nwhile True: pass")
        self.check_stops("threading.Event().wait()")
        self.check_stops("async def f():\n  while True: pass\nawait asyncio.gather(f(), asyncio.sleep(1))")
        self.check_stops("import subprocess\nsubprocess.run(['sleep', '100'])")
        self.check_stops("asyncio.run(asyncio.sleep(100))")
        self.check_stops("while True:\n  try: time.sleep(100)\n  except Exception: pass")
        self.check_stops("class Slow:\n  def _repr_png_(self):\n    while True: pass\nSlow()")
        self.check_stops("try:\n  time.sleep(100)\nfinally:\n  kept = 2")

    def test_ses_3_nothing_of_a_stopped_cell_is_left(self):
        late = "async def late():\n  await asyncio.sleep(0.01)\n  print('late')\n"
        self.check_stops(late + "t = asyncio.create_task(late())\nawait asyncio.sleep(100)")
        self.check_stops(late + "t = asyncio.create_task(late())\nawait asyncio.sleep(0)\nwhile True: pass")
        self.check_stops("c = tools.github.no_such_tool()\nwhile True: pass")

    def test_ses_3_one_that_waits_for_a_tool(self):
        silent = {"answer": lambda ask: None}
        for code in ("await tools.github.x()", "tools.github.x().result()", "[tools.github.x() for _ in range(3)][0].result()"):
            with Session(guest, **silent) as session:
                session.begin(code)
                session.until(lambda: session.ran.asks)
                session.interrupt()
                self.assertEqual(session.end().ending, "interrupted", code)
                self.assertEqual(session.send("1").value, 1)

    def test_ses_3_an_interrupt_may_come_at_any_moment(self):
        # Each signal a little later than the one before, so that they hit every phase.
        with Session(guest) as session:
            session.send("'it listens'")
            for number in range(600):
                session.begin("[call_mcp_tool('a.b', {}) for _ in range(9)]\n1")
                until = time.perf_counter() + number % 150 * 20e-6
                while time.perf_counter() < until:
                    pass
                session.interrupt()
                session.end()
                self.assertEqual(session.send("2").value, 2, number)

    def test_ses_3_a_task_that_has_not_begun_is_stopped_too(self):
        # The signal arrives in the event loop, just before the first step of `spin`.
        signalled = "import asyncio, os\nasyncio.get_running_loop().call_soon(os.kill, os.getpid(), 2)\n"
        spin = "async def spin():\n  while True: pass\n"
        for last in ("await asyncio.gather(spin(), asyncio.sleep(100))", "t = asyncio.create_task(spin())\nawait asyncio.sleep(100)"):
            with Session(guest) as session:
                self.assertEqual(session.send(spin + signalled + last).ending, "interrupted", last)
                self.assertEqual(session.send("2").value, 2)

    def test_one_that_comes_too_late_stops_nothing(self):
        with Session(guest) as session:
            session.send("'it listens'")
            for number in range(50):
                session.begin("1")
                session.interrupt()
                self.assertIn(session.end().ending, ("interrupted", {"returned": 1}))
                self.assertEqual(session.send(f"{number}").value, number)
                session.interrupt()

    def test_code_that_interrupts_itself_has_failed(self):
        with Session(guest) as session:
            self.assertEqual(session.send("raise KeyboardInterrupt").threw["message"], "KeyboardInterrupt")
            self.assertEqual(session.send("import signal, os\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n1").value, 1)
            session.begin("import time\nprint('runs', flush=True)\ntime.sleep(100)")
            session.until_written("runs")
            session.interrupt()
            self.assertEqual(session.end().ending, "interrupted")

    def test_an_interrupt_in_the_middle_of_a_frame_is_put_off(self):
        calls = "await asyncio.gather(*[tools.github.x(text='y' * 50_000) for _ in range(200)])"
        for code in (f"while True: {calls}", f"async def f():\n  while True: {calls}\nasyncio.run(f())"):
            with Session(guest) as session:
                session.send("import asyncio")
                for _ in range(15):
                    session.begin(code)
                    session.until(lambda: len(session.ran.asks) > 5)
                    session.ran.asks.clear()
                    session.interrupt()
                    self.assertEqual(session.end().ending, "interrupted")
                self.assertEqual(session.send("1").value, 1)

    def test_frames_stay_whole_under_a_rain_of_signals(self):
        with Session(guest) as session:
            for _ in range(20):
                session.begin("while True:\n  tools.github.x(text='y' * 5000).result()")
                session.until(lambda: len(session.ran.asks) > 5)
                session.ran.asks.clear()
                session.interrupt()
                self.assertEqual(session.end().ending, "interrupted")
            self.assertEqual(session.send("1").value, 1)


if __name__ == "__main__":
    unittest.main()
