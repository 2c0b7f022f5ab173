"""Measures the guest: `python3 measure.py [module to preload]...`, in microseconds.

Reports the tenth percentile of many runs, to leave out other load on the machine.
"""

import json
import os
import socket
import statistics
import struct
import sys
import time

from test_host import frame, load_guest

RUNS = 200
CALLS = 2000
OK = b'{"answer":{"id":%d,"result":{"Ok":{"n":1}}}}'


def microseconds(action, runs):
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        times.append((time.perf_counter() - start) * 1e6)
    return tenth_percentile(times)


def tenth_percentile(times):
    return statistics.quantiles(times, n=10)[0]


def bare_fork():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def start(guest):
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        guest.main(theirs.detach())
    theirs.close()
    return ours, pid


def waiting_child(guest, code):
    """Measures from the start frame to the exit of a child that was waiting for it."""
    times = []
    for _ in range(RUNS):
        started = start(guest)
        time.sleep(0.02)
        begin = time.perf_counter()
        program(guest, code, started=started)
        times.append((time.perf_counter() - begin) * 1e6)
    return tenth_percentile(times)


def program(guest, code, calls=0, started=None):
    ours, pid = started or start(guest)
    job = {"language": "python", "code": code, "input": None, "servers": ["a"], "memory_bytes": 1}
    ours.sendall(frame({"start": job}))
    answered, inbox, result = 0, bytearray(), None
    while chunk := ours.recv(1 << 16):
        inbox += chunk
        while len(inbox) >= 4 and len(inbox) >= 4 + struct.unpack_from("<I", inbox)[0]:
            end = 4 + struct.unpack_from("<I", inbox)[0]
            body = bytes(inbox[4:end])
            del inbox[:end]
            if body.startswith(b'{"ask"'):
                answered += 1
                answer = OK % answered
                ours.sendall(struct.pack("<I", len(answer)) + answer)
            elif body.startswith(b'{"returned"'):
                result = body[12:-1].decode()
    ours.close()
    assert os.waitpid(pid, 0)[1] == 0
    assert answered == calls, answered
    return result


def per_call(guest, body):
    """Returns the time of a call, and the guest's own CPU time in it."""
    code = f"""
import asyncio, time
start = time.perf_counter(), time.process_time()
{body}
[(time.perf_counter() - start[0]) / {CALLS} * 1e6, (time.process_time() - start[1]) / {CALLS} * 1e6]
"""
    pairs = [json.loads(program(guest, code, CALLS)) for _ in range(10)]
    return [tenth_percentile(times) for times in zip(*pairs)]


def echo_alone(guest):
    """Measures the scripted host and the socket alone: the lower bound of a call."""
    code = f"""
import socket, struct, time
wire = call_tool.__closure__[0].cell_contents
body = b'{{"ask":{{"id":1,"ask":{{"tool":{{"server":"a","tool":"b","args":{{"n":1}}}}}}}}}}'
frame = struct.pack("<I", len(body)) + body
start = time.perf_counter()
for _ in range({CALLS}):
    wire._socket.send(frame); wire._socket.recv(65536)
(time.perf_counter() - start) / {CALLS} * 1e6
"""
    return tenth_percentile([float(program(guest, code, CALLS)) for _ in range(10)])


def main():
    guest = load_guest()
    print(f"Python {sys.version.split()[0]}, preloaded: {sys.argv[1:] or 'nothing more'}")
    print(f"  fork before prepare            {microseconds(bare_fork, RUNS):8.0f}")
    start = time.perf_counter()
    guest.prepare(sys.argv[1:])
    print(f"  prepare                        {(time.perf_counter() - start) * 1e6:8.0f}")
    print(f"  fork after prepare             {microseconds(bare_fork, RUNS):8.0f}")
    print(f"  fork, 1+1, exit                {microseconds(lambda: program(guest, '1+1'), RUNS):8.0f}")
    run = microseconds(lambda: program(guest, "import asyncio\nawait asyncio.sleep(0)"), RUNS)
    print(f"  fork, a loop, exit             {run:8.0f}")
    print(f"  1+1 in a waiting child         {waiting_child(guest, '1+1'):8.0f}")
    print(f"  round trip of the bare socket  {echo_alone(guest):8.1f}")
    ways = {
        "awaited call": f"for _ in range({CALLS}): await tools.a.b(n=1)",
        "call waited for": f"for _ in range({CALLS}): tools.a.b(n=1).result()",
        "call_tool": f"for _ in range({CALLS}): call_tool('a', 'b', n=1)",
        "gathered call": f"await asyncio.gather(*(tools.a.b(n=1) for _ in range({CALLS})))",
        "call_tools": f"for _ in range({CALLS // 100}): call_tools([dict(server='a', tool='b', args=dict(n=1))] * 100)",
    }
    for name, body in ways.items():
        wall, own = per_call(guest, body)
        print(f"  {name:30} {wall:8.1f}, of which the guest works {own:.1f}")


main()
