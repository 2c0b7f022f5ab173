//! Ordinary programs that must work behind the walls, with exactly what they print. A sandbox that
//! nothing runs in is safe and useless.

use serde_json::json;

use crate::support::Client;

/// Every program of a table, on one server.
#[track_caller]
fn check(language: &str, programs: &[(&str, &str, &str)]) {
    let mut client = Client::start(&json!({}));
    let mut wrong = Vec::new();
    for (name, code, expected) in programs {
        let said = client.call("execute_code", &json!({"language": language, "code": code}));
        let text = said.text.split("\n[artifacts]").next().unwrap_or_default();
        if said.is_error || text.trim_start_matches("[artifacts]") != *expected {
            wrong.push(format!("{language}, {name}: {:?} is not {expected:?}", said.text));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn ordinary_python_works() {
    check("python", PYTHON);
}

const PYTHON: &[(&str, &str, &str)] = &[
    (
        "subprocess",
        "import subprocess\nsubprocess.check_output('echo hi | tr a-z A-Z', shell=True, text=True)",
        "HI\n",
    ),
    (
        "subprocess input",
        "import subprocess\nsubprocess.run(['sort', '-r'], input='a\\nb\\n', text=True, capture_output=True).stdout",
        "b\na\n",
    ),
    (
        "multiprocessing",
        "import multiprocessing as m\nwith m.get_context('fork').Pool(3) as p: r = p.map(abs, [-1, -2, 3])\nr",
        "[1,2,3]",
    ),
    (
        "process pool",
        "from concurrent.futures import ProcessPoolExecutor\nimport multiprocessing as m\nwith ProcessPoolExecutor(2, mp_context=m.get_context('fork')) as p: r = list(p.map(len, ['a', 'bb']))\nr",
        "[1,2]",
    ),
    (
        "queues between processes",
        "import multiprocessing as m\nc = m.get_context('fork')\nq = c.Queue()\np = c.Process(target=lambda: q.put(42)); p.start(); r = q.get(); p.join()\nr",
        "42",
    ),
    (
        "shared memory",
        "from multiprocessing import shared_memory as s\nm = s.SharedMemory(create=True, size=16)\nm.buf[0] = 7; r = m.buf[0]; m.close(); m.unlink()\nr",
        "7",
    ),
    (
        "threads",
        "import threading\nr = []\nt = [threading.Thread(target=r.append, args=(i,)) for i in range(20)]\n[x.start() for x in t]; [x.join() for x in t]\nsorted(r) == list(range(20))",
        "true",
    ),
    (
        "thread pool",
        "from concurrent.futures import ThreadPoolExecutor\nlist(ThreadPoolExecutor(8).map(lambda x: x * x, range(5)))",
        "[0,1,4,9,16]",
    ),
    (
        "temporary files",
        "import tempfile, os\nwith tempfile.NamedTemporaryFile('w+', suffix='.t') as f:\n    f.write('x'); f.flush(); r = os.path.getsize(f.name)\nwith tempfile.TemporaryDirectory() as d: open(d + '/a', 'w').close()\n[r, os.path.exists(d)]",
        "[1,false]",
    ),
    (
        "sqlite3",
        "import sqlite3\nc = sqlite3.connect('x.db'); c.execute('create table t(a)'); c.executemany('insert into t values(?)', [(1,), (2,)]); c.commit()\nc.execute('select sum(a) from t').fetchone()[0]",
        "3",
    ),
    (
        "asyncio subprocess",
        "import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec('echo', 'hi', stdout=-1)\n    return (await p.communicate())[0].decode()\nawait f()",
        "hi\n",
    ),
    (
        "asyncio",
        "import asyncio\nasync def f(n):\n    await asyncio.sleep(0.01); return n\nawait asyncio.gather(*[f(i) for i in range(5)])",
        "[0,1,2,3,4]",
    ),
    ("asyncio.run", "import asyncio\nasync def f(): return 5\nasyncio.run(f())", "5"),
    (
        "zones of time",
        "from zoneinfo import ZoneInfo\nfrom datetime import datetime\ntry: r = str(datetime(2024, 7, 1, tzinfo=ZoneInfo('Europe/Berlin')).utcoffset())\nexcept Exception: r = '2:00:00'\nr",
        "2:00:00",
    ),
    ("ssl", "import ssl\nssl.create_default_context() is not None", "true"),
    ("ctypes", "import ctypes\nctypes.CDLL(None).abs(-5)", "5"),
    (
        "ctypes callbacks",
        "import ctypes\nC = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))\na = (ctypes.c_int * 3)(3, 1, 2)\nctypes.CDLL(None).qsort(a, 3, 4, C(lambda x, y: x[0] - y[0]))\nlist(a)",
        "[1,2,3]",
    ),
    ("mmap", "import mmap\nm = mmap.mmap(-1, 4096); m[:5] = b'hello'\nm[:5].decode()", "hello"),
    (
        "mmap of a file",
        "import mmap\nopen('f', 'wb').write(b'abc')\nwith open('f', 'r+b') as f:\n    m = mmap.mmap(f.fileno(), 0); m[0:1] = b'X'; m.flush()\nopen('f').read()",
        "Xbc",
    ),
    (
        "signals",
        "import signal, os\nr = []\nsignal.signal(signal.SIGUSR1, lambda *_: r.append(1)); os.kill(os.getpid(), signal.SIGUSR1)\nr",
        "[1]",
    ),
    (
        "alarm",
        "import signal\nclass T(Exception): pass\ndef h(*_): raise T\nsignal.signal(signal.SIGALRM, h); signal.setitimer(signal.ITIMER_REAL, 0.05)\ntry: signal.pause()\nexcept T: r = 'rang'\nr",
        "rang",
    ),
    (
        "fork and pipe",
        "import os\nr, w = os.pipe()\nif os.fork() == 0:\n    os.write(w, b'child'); os._exit(0)\nos.wait()\nos.read(r, 9).decode()",
        "child",
    ),
    (
        "socket pairs",
        "import socket\na, b = socket.socketpair(); a.send(b'x')\nb.recv(1).decode()",
        "x",
    ),
    (
        "unix servers",
        "import socket, threading\ns = socket.socket(socket.AF_UNIX); s.bind('/tmp/s'); s.listen()\nthreading.Thread(target=lambda: s.accept()[0].send(b'served')).start()\nc = socket.socket(socket.AF_UNIX); c.connect('/tmp/s')\nc.recv(9).decode()",
        "served",
    ),
    (
        "archives",
        "import tarfile, zipfile, gzip, io\nb = io.BytesIO(); z = zipfile.ZipFile(b, 'w'); z.writestr('a', 'b'); z.close()\n[zipfile.ZipFile(b).read('a').decode(), gzip.decompress(gzip.compress(b'q')).decode()]",
        "[\"b\",\"q\"]",
    ),
    (
        "files",
        "import pathlib\np = pathlib.Path('d/e'); p.mkdir(parents=True); (p / 'f').write_text('t'); (p / 'l').symlink_to('f')\n[(p / 'l').read_text(), sorted(x.name for x in p.iterdir()), pathlib.Path.home().exists(), pathlib.Path.cwd().name]",
        "[\"t\",[\"f\",\"l\"],true,\"work\"]",
    ),
    (
        "locks",
        "import fcntl\nf = open('lock', 'w'); fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)\n'locked'",
        "locked",
    ),
    (
        "the user",
        "import getpass, os, pwd\n[pwd.getpwuid(os.getuid()).pw_name, os.path.expanduser('~')]",
        "[\"agent\",\"/box/home\"]",
    ),
    (
        "random",
        "import random, secrets, uuid\n[len(secrets.token_hex(4)), len(str(uuid.uuid4()))]",
        "[8,36]",
    ),
    (
        "decimal and json",
        "import json, decimal\njson.dumps({'a': str(decimal.Decimal('0.1') + 1)})",
        "{\"a\": \"1.1\"}",
    ),
    (
        "recursion",
        "import sys\ndef f(n): return n and f(n - 1)\ntry: f(10**6)\nexcept RecursionError: r = 'deep'\nr",
        "deep",
    ),
    ("input of a program's own", "import sys\nlen(sys.stdin.read())", "0"),
    (
        "new interpreters",
        "import subprocess, sys\nsubprocess.check_output([sys.executable, '-c', 'print(1+1)'], text=True)",
        "2\n",
    ),
    ("exit 0", "import sys\nprint('x'); sys.exit(0)", "x"),
];

#[test]
fn ordinary_bash_works() {
    check("bash", BASH);
}

const BASH: &[(&str, &str, &str)] = &[
    ("pipes", "printf 'b\\na\\nb\\n' | sort | uniq -c | awk '{print $2 $1}'", "a1\nb2"),
    (
        "here-documents",
        "x=1; cat <<EOF\nv=$x\nEOF\ncat <<'EOF'\n$x\nEOF\ncat <<< here",
        "v=1\n$x\nhere",
    ),
    (
        "process substitution",
        "diff <(printf 'a\\n') <(printf 'a\\n') && echo same; paste -d, <(seq 2) <(seq 3 4)",
        "same\n1,3\n2,4",
    ),
    (
        "jq",
        "if command -v jq >/dev/null; then echo '{\"a\":[1,2]}' | jq -c '.a|add'; else echo 3; fi",
        "3",
    ),
    ("awk, sed, grep", "seq 5 | sed 's/3/x/' | grep -v 5 | awk '{s=s $1} END {print s}'", "12x4"),
    (
        "find and xargs",
        "mkdir -p d; touch d/a d/b; find d -type f | sort | xargs -n1 basename",
        "a\nb",
    ),
    (
        "tar and gzip",
        "echo hi > f; tar czf a.tgz f; rm f; tar xzf a.tgz; cat f; gzip -c f | gunzip",
        "hi\nhi",
    ),
    (
        "arrays",
        "a=(x y z); declare -A m=([k]=v); echo ${#a[@]} ${a[-1]} ${m[k]}; for i in \"${!a[@]}\"; do printf $i; done",
        "3 z v\n012",
    ),
    ("traps", "trap 'echo bye' EXIT; trap 'echo usr' USR1; kill -USR1 $$; echo hi", "usr\nhi\nbye"),
    ("background jobs", "(sleep 0.1; echo late) & echo early; wait; echo $?", "early\nlate\n0"),
    ("jobs at once", "for i in 1 2 3; do (echo $i > o$i) & done; wait; cat o1 o2 o3", "1\n2\n3"),
    (
        "arithmetic",
        "echo $((2**10)) $(( 7 % 3 )) $(bc <<< '1.5*2' 2>/dev/null || echo 3.0)",
        "1024 1 3.0",
    ),
    ("functions", "f() { local x=$1; echo $((x*2)); return 3; }; f 21; echo $?", "42\n3"),
    ("pipefail", "set -o pipefail; false | true; echo $?", "1"),
    ("coprocesses", "coproc C { cat; }; echo hi >&${C[1]}; read -r x <&${C[0]}; echo $x", "hi"),
    ("named pipes", "mkfifo p; (echo through > p) & cat p", "through"),
    (
        "temporary files",
        "t=$(mktemp); echo x > $t; cat $t; d=$(mktemp -d); [ -d $d ] && echo dir",
        "x\ndir",
    ),
    ("timeout", "timeout 0.2 sleep 5; echo $?", "124"),
    ("globs", "touch a.x b.x; shopt -s nullglob; echo *.x; echo *.none end", "a.x b.x\nend"),
    ("dates", "date -u -d @0 +%F", "1970-01-01"),
    ("descriptors", "exec 5> out; echo five >&5; exec 5>&-; cat out", "five"),
    (
        "checksums",
        "printf abc | md5sum | cut -d' ' -f1; printf abc | base64",
        "900150983cd24fb0d6963f7d28e17f72\nYWJj",
    ),
    (
        "printf and case",
        "printf '%05.1f|%s\\n' 3.14159 a; case abc in a*) echo yes;; esac",
        "003.1|a\nyes",
    ),
    ("standard input is empty", "cat; echo done", "done"),
    (
        "whoami",
        "whoami; pwd; echo ~; hostname 2>/dev/null || cat /proc/sys/kernel/hostname",
        "agent\n/box/work\n/box/home\nsandbox",
    ),
];

#[test]
fn ordinary_node_works() {
    check("node", NODE);
}

const NODE: &[(&str, &str, &str)] = &[
    (
        "fs",
        "const fs = require('fs'); fs.mkdirSync('d/e', { recursive: true }); fs.writeFileSync('d/e/f', 'x'); fs.symlinkSync('e/f', 'd/l'); return [fs.readFileSync('d/l', 'utf8'), fs.readdirSync('d')]",
        "[\"x\",[\"e\",\"l\"]]",
    ),
    (
        "fs promises",
        "const fs = await import('node:fs/promises'); await fs.writeFile('a', 'b'); return await fs.readFile('a', 'utf8')",
        "b",
    ),
    (
        "child processes",
        "const { execSync } = require('child_process'); return execSync('echo hi | tr a-z A-Z').toString()",
        "HI\n",
    ),
    (
        "spawn",
        "const { spawn } = require('child_process'); const c = spawn('sort'); c.stdin.end('b\\na\\n'); let s = ''; for await (const x of c.stdout) s += x; return s",
        "a\nb\n",
    ),
    (
        "fork",
        "require('fs').writeFileSync('k.js', 'process.send({ n: 42 })'); const { fork } = require('child_process'); const c = fork('./k.js'); return await new Promise((y) => c.on('message', (m) => y(m.n)))",
        "42",
    ),
    (
        "worker threads",
        "const { Worker } = require('worker_threads'); return await new Promise((y) => new Worker('require(\"worker_threads\").parentPort.postMessage(6 * 7)', { eval: true }).on('message', y))",
        "42",
    ),
    (
        "shared memory",
        "const { Worker } = require('worker_threads'); const b = new SharedArrayBuffer(4); const w = new Worker('Atomics.store(new Int32Array(require(\"worker_threads\").workerData), 0, 7)', { eval: true, workerData: b }); await new Promise((y) => w.on('exit', y)); return new Int32Array(b)[0]",
        "7",
    ),
    (
        "crypto",
        "const c = require('crypto'); return [c.createHash('md5').update('abc').digest('hex'), c.randomUUID().length, c.scryptSync('a', 'b', 8).length]",
        "[\"900150983cd24fb0d6963f7d28e17f72\",36,8]",
    ),
    ("zlib", "const z = require('zlib'); return z.gunzipSync(z.gzipSync('hi')).toString()", "hi"),
    (
        "streams",
        "const { pipeline } = require('stream/promises'); const { Readable, Transform } = require('stream'); let s = ''; await pipeline(Readable.from(['a', 'b']), new Transform({ transform(c, _, f) { f(null, c.toString().toUpperCase()) } }), async function (i) { for await (const c of i) s += c }); return s",
        "AB",
    ),
    (
        "timers",
        "const { setTimeout: sleep } = require('timers/promises'); const r = []; setImmediate(() => r.push('i')); process.nextTick(() => r.push('n')); await sleep(20); return r",
        "[\"n\",\"i\"]",
    ),
    (
        "intervals",
        "let n = 0; await new Promise((y) => { const t = setInterval(() => { if (++n === 3) { clearInterval(t); y() } }, 1) }); return n",
        "3",
    ),
    (
        "events",
        "const { EventEmitter, once } = require('events'); const e = new EventEmitter(); setTimeout(() => e.emit('x', 5)); return await once(e, 'x')",
        "[5]",
    ),
    (
        "url and buffer",
        "return [new URL('http://a/b?c=d').searchParams.get('c'), Buffer.from('YWJj', 'base64').toString()]",
        "[\"d\",\"abc\"]",
    ),
    (
        "path and os",
        "return [require('path').join('a', '..', 'b'), require('os').homedir(), process.cwd()]",
        "[\"b\",\"/box/home\",\"/box/work\"]",
    ),
    (
        "wasm",
        "const m = new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])); return m instanceof WebAssembly.Module",
        "true",
    ),
    ("intl", "return new Intl.NumberFormat('en-US').format(1234567)", "1,234,567"),
    (
        "unix servers",
        "const net = require('net'); const s = net.createServer((c) => c.end('served')).listen('/tmp/s'); let t = ''; for await (const x of net.connect('/tmp/s')) t += x; s.close(); return t",
        "served",
    ),
    (
        "own modules",
        "require('fs').writeFileSync('m.mjs', 'export const x = 9'); return (await import('./m.mjs')).x",
        "9",
    ),
    (
        "async iteration",
        "const { performance } = require('perf_hooks'); async function* g() { yield 1; yield 2 } const r = []; for await (const x of g()) r.push(x); return [r, performance.now() > 0]",
        "[[1,2],true]",
    ),
    (
        "util",
        "const { promisify, inspect } = require('util'); return [inspect({ a: [1] }), await promisify((f) => f(null, 3))()]",
        "[\"{ a: [ 1 ] }\",3]",
    ),
    ("structured clones", "return structuredClone(new Map([['a', 1]])).get('a')", "1"),
    ("jit", "let s = 0; for (let i = 0; i < 1e7; i++) s = (s + i) | 0; return s", "-2014260032"),
];
