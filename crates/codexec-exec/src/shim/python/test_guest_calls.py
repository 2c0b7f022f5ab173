import base64
import textwrap
import time
import unittest

from test_guest import ERROR, PNG, guest, needs, refuse, run
from test_host import Host, echo


class Calls(unittest.TestCase):
    def asked(self, code, **host):
        ran = run(code, **host)
        ran.value
        return ran.asks

    def test_ways_to_call(self):
        def tool(server, name, **args):
            return {"tool": {"server": server, "tool": name, "args": args}}

        asks = self.asked(
            """
            await tools.github.get_issue(owner="x", number=3)
            await tools.github.get_issue({"a": 1}, b=2)
            await tools["my-server"]["get-issue"]()
            await tools.my_server.x()
            await mcp_my_server.x()
            await mcp_github.x()
            tools.nobody.x().result()
            await call_mcp_tool("mcp__a__b", {"c": 1}, d=2)
            await callMCPTool("a.b")
            await call_mcp_tool(tool_name="a.b", params={"c": 1})
            await call_mcp_tool("a.b", params=1)
            await get_tool_schema(tool_name="a.b")
            await discover_mcp_tools(search_terms=["x", "y"])
            call_tool("a", "b", {"c": 1})
            call_tool("a", "b", c=1)
            call_tool("mcp__a__b", {"c": 1})
            await callTool("mcp__a__b")
            """
        )
        self.assertEqual(
            asks,
            [
                tool("github", "get_issue", owner="x", number=3),
                tool("github", "get_issue", a=1, b=2),
                tool("my-server", "get-issue"),
                tool("my-server", "x"),
                tool("my-server", "x"),
                tool("github", "x"),
                tool("nobody", "x"),
                {"named": {"name": "mcp__a__b", "args": {"c": 1, "d": 2}}},
                {"named": {"name": "a.b", "args": {}}},
                {"named": {"name": "a.b", "args": {"c": 1}}},
                {"named": {"name": "a.b", "args": {"params": 1}}},
                {"schema": {"name": "a.b"}},
                {"discover": {"words": ["x", "y"]}},
                tool("a", "b", c=1),
                tool("a", "b", c=1),
                {"named": {"name": "mcp__a__b", "args": {"c": 1}}},
                {"named": {"name": "mcp__a__b", "args": {}}},
            ],
        )

    def test_resources_and_prompts(self):
        asks = self.asked(
            """
            await resources.list(); resources.list("s").result(); await resources.templates("s")
            await resources.read("s", 'x://"y')
            await prompts.list(); await prompts.get("s", "p"); await prompts.get("s", "p", {"a": "b"}, c="d")
            await tools.resources.list()
            """
        )
        self.assertEqual(
            asks,
            [
                {"resources": {"server": None}},
                {"resources": {"server": "s"}},
                {"resource_templates": {"server": "s"}},
                {"read_resource": {"server": "s", "uri": 'x://"y'}},
                {"prompts": {"server": None}},
                {"prompt": {"server": "s", "name": "p", "args": {}}},
                {"prompt": {"server": "s", "name": "p", "args": {"a": "b", "c": "d"}}},
                {"tool": {"server": "resources", "tool": "list", "args": {}}},
            ],
        )

    def test_what_is_kept(self):
        def own(tool, **args):
            return {"own": {"name": tool, "args": args}}

        asks = self.asked(
            """
            await sessions.start("python"); sessions.send("s", "1", timeout_ms=5).result()
            await sessions.list(); await sessions.snapshot("a"); await sessions.snapshots()
            await sessions.restore("a"); await sessions.close("s")
            await scripts.run("x", args=["a"], input={"n": 1}); await scripts.get("x", 2)
            await scripts.run("x", {"input": 1})
            await scripts.save("x", "1"); await scripts.save_and_run({"name": "x", "code": "1"})
            await scripts.saveAndRun("x", None, code="1")
            await scripts.list(); await scripts.search("a"); await scripts.delete("a")
            await packages.install("a", "python"); await packages.list(session_id="s")
            await logs.search("pandas", limit=5); await logs.search(); await logs.get("e")
            await tools.logs.search()
            """
        )
        self.assertEqual(
            asks,
            [
                own("start_session", language="python"),
                own("send_to_session", session_id="s", code="1", timeout_ms=5),
                own("list_sessions"),
                own("snapshot_session", name="a"),
                own("list_snapshots"),
                own("restore_session", name="a"),
                own("close_session", session_id="s"),
                own("run_script", name="x", args=["a"], input={"n": 1}),
                own("get_script", name="x", version=2),
                own("run_script", name="x", input=1),
                own("save_script", name="x", code="1"),
                own("save_and_run_script", name="x", code="1"),
                own("save_and_run_script", name="x", code="1"),
                own("list_scripts"),
                own("search_scripts", query="a"),
                own("delete_script", name="a"),
                own("install_package", package="a", language="python"),
                own("list_packages", session_id="s"),
                own("search_execution_logs", query="pandas", limit=5),
                own("search_execution_logs"),
                own("get_execution_log", execution_id="e"),
                {"tool": {"server": "logs", "tool": "search", "args": {}}},
            ],
        )
        self.assertEqual(run("[repr(logs), repr(logs.get)]").value, ["<logs: search, get>", "<logs.get(execution_id, ..)>"])
        for code, message in [
            ("scripts.get('x', 1, 2)", "scripts.get takes name, version in order"),
            ("logs.get('x', execution_id='y')", "logs.get was given execution_id twice"),
            ("logs.get(object)", "the arguments of logs.get cannot be written as JSON"),
        ]:
            ran = run(code)
            self.assertIn(message, ran.threw["message"])
            self.assertEqual((ran.threw["code"], ran.asks), ("INVALID_ARGS", []), code)

    def test_other_asks(self):
        asks = self.asked(
            """
            await discover_mcp_tools(); await discoverMCPTools("a"); await discover_mcp_tools(["a", "b"])
            await search_tools("q"); await searchTools("q", limit=3)
            await search_tools("q", server="s", read_only=True, detail="full")
            await search_tools(destructive=False)
            await get_tool_schema("a.b"); await getToolSchema("a.b")
            help(); await help("github"); help(tools.github.x); help(tools)
            """
        )
        self.assertEqual(
            asks,
            [
                {"discover": {"words": []}},
                {"discover": {"words": ["a"]}},
                {"discover": {"words": ["a", "b"]}},
                {"search": {"query": "q", "limit": 10}},
                {"search": {"query": "q", "limit": 3}},
                {"search": {"query": "q", "limit": 10, "server": "s", "detail": "full", "kind": "read_only"}},
                {"search": {"query": "", "limit": 10, "kind": "safe"}},
                {"schema": {"name": "a.b"}},
                {"schema": {"name": "a.b"}},
                {"help": {"name": None}},
                {"help": {"name": "github"}},
                {"help": {"name": "github.x"}},
                {"help": {"name": None}},
            ],
        )
        ran = run("help(len)\nhelp('x')", answer=lambda ask: {"Ok": "a text"})
        self.assertEqual(ran.value, "a text")
        self.assertIn("Help on built-in function len", ran.stdout)

    def test_names(self):
        ran = run(
            """
            [list(tools), dir(tools), "github" in tools, "my_server" in tools, "x" in tools, len(tools),
             dir(tools.github), "a" in tools.github, list(mcp_github), hasattr(tools, "__array__")]
            """,
            answer=lambda ask: {"Ok": ["a", "b"]},
        )
        servers = ["github", "my-server"]
        self.assertEqual(
            ran.value,
            [servers, servers, True, True, False, 2, ["a", "b"], True, ["a", "b"], False],
        )
        self.assertEqual(ran.asks, [{"tool_names": {"server": "github"}}])

    def test_outcomes(self):
        self.assertEqual(run("call_tool('a', 'b')", answer=refuse).value, {"ok": False, "error": ERROR})
        self.assertEqual(run("(await call_tool('a', 'b'))['ok']").value, True)
        self.assertEqual(run("call_tool('a', 'b')").value["result"]["tool"], "b")
        ran = run("[call_tool('a', 'b', [1]), call_tool(1, 'b'), call_tool('a', 'b', {'x': object})]")
        self.assertEqual([out["error"]["code"] for out in ran.value], ["INVALID_ARGS"] * 3)
        self.assertEqual(ran.asks, [])

    def test_batches(self):
        ran = run(
            """
            calls = [{"server": "a", "tool": str(n), "args": {"n": n}} for n in range(50)]
            out = call_tools(calls + [{"name": "a.b"}, 3], max_parallel=4)
            [[o["result"]["args"]["n"] for o in out[:50]], out[50]["result"]["name"], out[51]["ok"]]
            """,
            window=3,
        )
        self.assertEqual(ran.value, [list(range(50)), "a.b", False])
        self.assertIn("at most 100 calls", run("call_tools([{}] * 101)").threw["message"])
        self.assertIn("1 to 32", run("call_tools([], max_parallel=0)").threw["message"])

    def test_arguments(self):
        ran = run(
            """
            import datetime, pathlib
            tools.a.b(when=datetime.date(2026, 1, 2), path=pathlib.Path("x"), s={1}, half="\\ud800").result()
            """
        )
        self.assertEqual(ran.value["args"], {"when": "2026-01-02", "path": "x", "s": [1], "half": "\ufffd"})

        def check(code, words):
            threw = run(code).threw
            self.assertEqual(threw["code"], "INVALID_ARGS")
            self.assertIn(words, threw["message"])

        check("tools.a.b('x')", "a.b takes named arguments, or one dict of them; it was given a str")
        check("tools.a.b(x=object())", "object has no JSON form")
        check("tools.a.b(x=float('nan'))", "cannot be written as JSON")
        check("tools.a.b(x=tools.c.d())", "was not awaited: write `await tools.c.d(..)`")
        check("tools.a.b(x='x' * (9 << 20))", "at most 8388608 are allowed")
        check("a = {}\na['a'] = a\ntools.a.b(a)", "cannot be written as JSON")

    def test_a_call_is_not_its_result(self):
        for use in ("['x']", ".title", ".items()"):
            message = run(f"tools.a.b(){use}").threw["message"]
            self.assertIn("write `await tools.a.b(..)` or `tools.a.b(..).result()`", message)
        for use in ("list({})", "len({})", "bool({})", "1 in {}", "[*{}]"):
            message = run(use.format("tools.a.b()")).threw["message"]
            self.assertIn("this tool call was not awaited", message)
        self.assertEqual(run("isinstance(tools.a.b(), TypeError), hasattr(tools.a.b(), 'x')").value, [False, False])
        self.assertIn("<tool call tools.a.b(..), under way: `await` it", run("print(tools.a.b())").stdout)

    def test_calls_work_everywhere(self):
        ran = run(
            """
            import asyncio, concurrent.futures, threading
            async def many(n):
                return [r["args"]["n"] for r in await asyncio.gather(*(tools.a.b(n=i) for i in range(n)))]
            def in_thread(n):
                return tools.a.b(n=n).result()["args"]["n"]
            def own_loop(n):
                return asyncio.run(many(n))
            call = tools.a.b(n=1)
            found = [await call, await call, call.result(), await many(100)]
            found.append(await asyncio.gather(*(asyncio.to_thread(in_thread, i) for i in range(30))))
            found.append(await asyncio.gather(many(20), *(asyncio.to_thread(own_loop, 20) for i in range(4))))
            found.append(await asyncio.create_task(tools.a.b(n=2)))
            found.append(await asyncio.wait_for(tools.a.b(n=3), 5))
            found.append(call_tool("a", "b", n=4)["ok"])
            waited = []
            for done in asyncio.as_completed([tools.a.b(n=5), tools.a.b(n=6)]):
                waited.append((await done)["args"]["n"])
            found.append(sorted(waited))
            found
            """
        )
        value = ran.value
        self.assertEqual([v["args"]["n"] for v in value[:3]], [1, 1, 1])
        self.assertEqual(value[3], list(range(100)))
        self.assertEqual(value[4], list(range(30)))
        self.assertEqual(value[5], [list(range(20))] * 5)
        self.assertEqual([value[6]["args"]["n"], value[7]["args"]["n"], value[8], value[9]], [2, 3, True, [5, 6]])

    def test_threads_and_loops_at_once(self):
        ran = run(
            """
            import asyncio, threading
            counts = []
            def work():
                for i in range(200): tools.a.b(n=i).result()
                counts.append("thread")
            def loop_work():
                async def go():
                    for i in range(200): await tools.a.b(n=i)
                asyncio.run(go()); counts.append("loop")
            threads = [threading.Thread(target=t) for t in (work, work, loop_work, loop_work)]
            for t in threads: t.start()
            for i in range(200): await tools.a.b(n=i)
            for t in threads: await asyncio.to_thread(t.join)
            sorted(counts)
            """
        )
        self.assertEqual(ran.value, ["loop", "loop", "thread", "thread"])
        self.assertEqual(len(ran.asks), 1000)

    def test_gathered_calls_are_under_way_together(self):
        ran = run("import asyncio\nlen(await asyncio.gather(*(tools.a.b() for _ in range(50))))", window=50)
        self.assertEqual(ran.value, 50)

    def test_a_slow_reader_is_no_deadlock(self):
        # The host answers with much and reads little: both directions fill up.
        big = "x" * 20_000
        code = f"""
            import asyncio
            calls = [tools.a.b(text="{big}", n=i) for i in range(300)]
            sum(r["args"]["n"] for r in await asyncio.gather(*calls))
            """
        ran = Host(guest, echo).run(textwrap.dedent(code), socket_bytes=4096)
        self.assertEqual(ran.value, 300 * 299 // 2)
        code = f"""
            import concurrent.futures
            def one(i): return tools.a.b(text="{big}", n=i).result()["args"]["n"]
            with concurrent.futures.ThreadPoolExecutor(16) as pool: total = sum(pool.map(one, range(300)))
            total
            """
        ran = Host(guest, echo).run(textwrap.dedent(code), socket_bytes=4096)
        self.assertEqual(ran.value, 300 * 299 // 2)

    def test_timeouts_and_signals(self):
        ran = run(
            """
            import asyncio, signal
            found = []
            try: await asyncio.wait_for(tools.a.b(), 0.05)
            except asyncio.TimeoutError: found.append("wait_for")
            try: tools.a.b().result(timeout=0.05)
            except TimeoutError: found.append("result")
            def alarm(*_): raise InterruptedError
            signal.signal(signal.SIGALRM, alarm); signal.setitimer(signal.ITIMER_REAL, 0.05)
            try: tools.a.b().result()
            except InterruptedError: found.append("signal")
            found
            """,
            answer=lambda ask: None,
        )
        self.assertEqual(ran.value, ["wait_for", "result", "signal"])

    def test_a_big_answer_arrives(self):
        self.assertEqual(run("len(await tools.a.b())", answer=lambda ask: {"Ok": "é" * 4_000_000}).value, 4_000_000)

    def test_progress(self):
        ran = run("progress('half'); progress(3); progress({'message': 'm'})")
        self.assertEqual(ran.named("progress"), ["half", "3", "m"])

    def test_calls_inside_the_result_are_waited_for(self):
        self.assertEqual(run("[tools.a.b(n=1), 2]").value[0]["args"], {"n": 1})


class Pictures(unittest.TestCase):
    def test_emit(self):
        ran = run(
            f"""
            data = {PNG!r}
            open("x.png", "wb").write(data)
            import base64, pathlib
            class Png:
                def _repr_png_(self): return data
            emit(data); emit("x.png"); emit(pathlib.Path("x.png")); emit(bytearray(data)); emit(Png())
            emit("data:image/png;base64," + base64.b64encode(data).decode())
            emit(b"GIF89a..."); emit(b"\\xff\\xd8\\xff"); emit(b"RIFF1234WEBP")
            display("text", [1])
            Png()
            """
        )
        self.assertEqual(ran.value, "[image 1x1]")
        types = [image["mime"].partition("/")[2] for image in ran.named("image")]
        self.assertEqual(types, ["png"] * 6 + ["gif", "jpeg", "webp", "png"])
        self.assertEqual(ran.stdout, "text\n[1]\n")
        for wrong in ("3", "b'text'", "__file__", "None"):
            code = f"open('main.py', 'w').write('x')\nemit({wrong})"
            self.assertIn("TypeError: emit shows a matplotlib figure", run(code).threw["message"])
        self.assertIn("FileNotFoundError", run("emit('nothing.png')").threw["message"])

    def test_blocks_of_tools_are_shown(self):
        data = base64.b64encode(PNG).decode()
        image = {"type": "image", "data": data, "mimeType": "image/png"}
        wav = base64.b64encode(b"RIFF1234WAVEfmt ").decode()
        audio = {"type": "audio", "data": wav, "mimeType": "audio/wav"}
        contents = {"uri": "x://y", "blob": data, "mimeType": "image/png"}
        resource = {"type": "resource", "resource": contents}
        given = {"image": image, "audio": audio, "contents": contents, "resource": resource}
        ran = run(
            """
            b = input
            emit(b["image"]); emit(b["audio"]); emit(b["contents"]); emit(b["resource"])
            emit([{"type": "text", "text": "hi"}, b["image"]]); emit({"content": [b["image"]]})
            emit({"type": "image", "data": "eA==", "mimeType": "image/bmp"})
            [b["image"], {"deep": [b["audio"]]}, {"type": "image"}]
            """,
            input=given,
        )
        words = ["[image 1x1]", {"deep": ["[audio]"]}, {"type": "image"}]
        self.assertEqual((ran.value, ran.stdout), (words, "hi\n"))
        types = [image["mime"].partition("/")[2] for image in ran.named("image")]
        self.assertEqual(types, "png wav png png png png png wav".split())
        self.assertIn("a block of type image was left out", ran.stderr)
        # Binary data never becomes text.
        self.assertNotIn(data[:20], str(run("await tools.a.b()", lambda _: {"Ok": image}).value))

    def test_limits(self):
        ran = run(f"for _ in range(13): emit({PNG!r})\nemit({PNG!r} + bytes(6 << 20))")
        self.assertEqual((ran.value, len(ran.named("image"))), (None, 10))
        self.assertIn("3 were left out", ran.stderr)
        self.assertIn("at most 5 MiB", ran.stderr)

    @needs("PIL")
    def test_pil(self):
        ran = run("from PIL import Image\n[Image.new('RGB', (30, 20)), Image.new('CMYK', (3, 2))]")
        self.assertEqual((ran.value, len(ran.named("image"))), (["[image 30x20]", "[image 3x2]"], 2))
        ran = run("from PIL import Image\nimport os\nImage.frombytes('RGB', (2000, 2000), os.urandom(12_000_000))")
        self.assertEqual(len(ran.named("image")), 1)

    @needs("matplotlib")
    def test_figures(self):
        def check(code, value, pictures, stderr=""):
            ran = run("import matplotlib.pyplot as plt\n" + code)
            self.assertEqual((ran.value, len(ran.named("image")), ran.stderr), (value, pictures, stderr))

        check("plt.plot([1, 2]); None", None, 1)
        check("fig, ax = plt.subplots()\nfig", "[figure 640x480]", 1)
        check("fig, ax = plt.subplots(dpi=50)\nax", "[figure 320x240]", 1)
        check("plt.plot([1]); plt.show(); plt.plot([2]); plt.show()", None, 2)
        check("fig, ax = plt.subplots(); plt.show()\nfig", "[figure, shown before]", 1)
        check("fig, ax = plt.subplots(); emit(fig); emit(fig)", None, 2)
        check("fig, ax = plt.subplots(); plt.close(fig)", None, 0)
        check("fig, ax = plt.subplots(); fig.show()", None, 1)
        check("plt.switch_backend('Agg'); plt.figure(); None", None, 1)
        check("plt.get_backend().lower()", "module://codexec_figures", 0)
        check("for i in range(12): plt.figure()", None, 10,
              "[codexec] only 10 pictures are shown: 2 were left out\n")
        ran = run("import matplotlib.pyplot as plt\nplt.figure()\n1/0")
        self.assertEqual((ran.threw["message"], len(ran.named("image"))), ("ZeroDivisionError: division by zero", 1))
        ran = run("import matplotlib; matplotlib.use('Agg')\nimport matplotlib.pyplot as plt\nplt.plot([1]); plt.show()")
        self.assertEqual(len(ran.named("image")), 1)
