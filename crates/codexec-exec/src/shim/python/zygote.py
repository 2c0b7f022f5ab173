"""Forks guests of an interpreter that is already warm, each into a worker that was made for it.

Started in the room of its workers, behind walls that the host has raised, with one packet socket
to the host as standard input. The zygote imports from the interpreter's own folders only. It forks
a nursery for each slot; a nursery forks guests, one after the other; a guest begins a session of
its own, enters its worker's namespaces, confines itself as its entry says, and only then runs
anything, or looks where packages are installed.
"""

import array
import ctypes
import fcntl
import json
import os
import resource
import signal
import socket
import sys

sys.path.insert(0, "/opt/codexec")
# asyncio works without, there is no network here, and it is a third of what a fork has to copy.
sys.modules["ssl"] = None
import asyncio  # noqa: E402, F401

del sys.modules["ssl"]
import codexec_guest  # noqa: E402

libc = ctypes.CDLL(None, use_errno=True)

MAX_FDS = 16
PACKET_BYTES = 160 << 10
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 24, 38
PR_CAP_AMBIENT, AMBIENT_CLEAR_ALL = 47, 4
SYS_LANDLOCK_RESTRICT_SELF = 446
SYS = {
    "x86_64": {"capset": 126, "seccomp": 317},
    "aarch64": {"capset": 91, "seccomp": 277},
}[os.uname().machine]
SET_MODE_FILTER = 1
CAPABILITIES_V3 = 0x20080522
EINVAL = 22
RLIMIT_CPU = resource.RLIMIT_CPU


class Broken(Exception):
    """A wall that does not stand: its layer, the step, the error's number."""


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def receive(host):
    """The next message and the descriptors beside it; None when the host is gone."""
    numbers = array.array("i")
    size = socket.CMSG_SPACE(MAX_FDS * numbers.itemsize)
    text, beside, _, _ = host.recvmsg(PACKET_BYTES, size, socket.MSG_CMSG_CLOEXEC)
    for _, _, data in beside:
        numbers.frombytes(data[: len(data) - len(data) % numbers.itemsize])
    return (json.loads(text) if text else None), list(numbers)


def send(host, message, fds=()):
    beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    host.sendmsg([json.dumps(message).encode()], beside)


def zygote(host):
    message, _ = receive(host)
    if message is None:
        return
    sys.path[:] = message["path"]
    codexec_guest.prepare(message["preload"])
    send(host, "ready")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        asked, fds = receive(host)
        if asked is None:
            return
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            host.close()
            nursery(socket.socket(fileno=fds[0]), message["entry"], message["guest_path"])
            os._exit(0)
        os.close(fds[0])


def nursery(host, entry, guest_path):
    os.setsid()
    tell(host, "hello", os.getpid())
    while True:
        asked, fds = receive(host)
        if asked is None:
            return
        channel, out, err, net, user, mnt, pid, ipc, uts, cgroup, *rules = fds
        try:
            enter("pid", pid, entry["lowered"])
            child = os.fork()
        except Exception as error:
            close(fds)
            send(host, {"broken": as_broken(error)})
            continue
        is_session = asked == "fork_session"
        if child == 0:
            if is_session:
                # The host bounds the time of each cell; a life may be longer than that.
                entry["rlimits"] = [limit for limit in entry["rlimits"] if limit[0] != RLIMIT_CPU]
            namespaces = {
                "network": net,
                "user": user,
                "mount": mnt,
                "ipc": ipc,
                "uts": uts,
                "cgroup-namespace": cgroup,
            }
            live(entry, (channel, out, err), namespaces, rules, guest_path)
        close(fds)
        # Until it is waited for, its id is the guest's and nobody else's.
        tell(host, "spawned", child)
        _, status, used = os.wait4(child, 0)
        seconds = used.ru_utime + used.ru_stime
        ended = {"status": status, "cpu_us": int(seconds * 1e6), "peak_bytes": used.ru_maxrss << 10}
        send(host, {"ended": ended})


def tell(host, what, pid):
    """Says it of this process. The host knows processes by what the kernel says of them."""
    pidfd = os.pidfd_open(pid)
    send(host, what, [pidfd])
    os.close(pidfd)


def close(fds):
    for fd in fds:
        os.close(fd)


def live(entry, kept, namespaces, rules, guest_path):
    channel = kept[0]
    try:
        # THREAT[ZYG-2]: a signal to its own process group reaches nobody else.
        os.setsid()
        confine(entry, kept, namespaces, rules)
    except BaseException as error:
        os.write(channel, json.dumps(as_broken(error)).encode() + b"\n")
        os._exit(1)
    os.write(channel, b"1")
    sys.path.extend(guest_path)
    codexec_guest.main(channel)


def confine(entry, kept, namespaces, rules):
    channel, out, err = kept
    for layer, fd in namespaces.items():
        enter(layer, fd, entry["lowered"])
    os.chdir("/box/work")
    null = os.open("/dev/null", os.O_RDONLY)
    for fd, number in ((null, 0), (out, 1), (err, 2)):
        os.dup2(fd, number)
    mine = sorted([channel, *rules])
    first = 3
    for fd in mine:
        os.closerange(first, fd)
        first = fd + 1
    os.closerange(first, 1 << 30)
    for number, limit in entry["rlimits"]:
        _, hard = resource.getrlimit(number)
        if hard != resource.RLIM_INFINITY:
            limit = min(limit, hard)
        resource.setrlimit(number, (limit, limit))
    try:
        # Should memory run out, it is the guest that goes.
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(score, b"1000")
        os.close(score)
    except OSError:
        pass
    attempt("pid", "die with the nursery", libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    drop_capabilities()
    attempt("no-new-privileges", "prctl", libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    for fd in rules:
        attempt("landlock", "restrict", libc.syscall(SYS_LANDLOCK_RESTRICT_SELF, fd, 0))
        os.close(fd)
    if not rules and "landlock" not in entry["lowered"]:
        raise Broken("landlock", "no rules came", EINVAL)
    code = bytes.fromhex(entry["filter"])
    program = Program(len(code) // 8, ctypes.cast(ctypes.c_char_p(code), ctypes.c_void_p))
    load = libc.syscall(SYS["seccomp"], SET_MODE_FILTER, 0, ctypes.byref(program))
    attempt("seccomp", "load", load)


def enter(layer, fd, lowered):
    # A worker that shares a namespace with us, because its layer was lowered, has none to enter.
    if libc.setns(fd, 0) < 0 and layer not in lowered:
        raise Broken(layer, "enter the namespace", ctypes.get_errno())


def drop_capabilities():
    for capability in range(64):
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    attempt("capabilities", "clear", libc.prctl(PR_CAP_AMBIENT, AMBIENT_CLEAR_ALL, 0, 0, 0))
    header = (ctypes.c_uint32 * 2)(CAPABILITIES_V3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    attempt("capabilities", "drop", libc.syscall(SYS["capset"], header, nothing))


def attempt(layer, step, result):
    if result < 0:
        raise Broken(layer, step, ctypes.get_errno())


def as_broken(error):
    if isinstance(error, Broken):
        layer, step, errno = error.args
    else:
        layer, step, errno = "user", repr(error)[:200], getattr(error, "errno", None) or EINVAL
    return {"layer": layer, "step": step, "errno": errno}


if __name__ == "__main__":
    # The numbers of the standard streams are never anything else's.
    control = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 10)
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    zygote(socket.socket(fileno=control))
    os._exit(0)
