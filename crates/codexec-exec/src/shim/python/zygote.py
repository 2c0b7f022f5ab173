"""Forks guests of a warm interpreter, each into the worker that was made for it.

Started in the rootfs of its workers, already confined by the host, with one packet socket to the
host as stdin. The zygote imports from the interpreter's own directories only. It forks a nursery
for each slot; a nursery forks guests, one after the other. A guest calls `setsid`, enters its
worker's namespaces, and confines itself as its entry says. Only then it runs code or searches the
directories of installed packages.
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
# asyncio works without ssl, there is no network here, and ssl is a third of what a fork copies.
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
    """A sandbox layer that could not be set up: the layer, the step, the errno."""


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def receive(host):
    """Returns the next message and its descriptors; None when the host is gone."""
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
    # An interrupt may come before a guest has its handler; a frame with the interrupt follows.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
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
    send_with_pidfd(host, "hello", os.getpid())
    while True:
        asked, fds = receive(host)
        if asked is None:
            return
        channel, stdin, out, err, net, user, mnt, pid, ipc, uts, cgroup, *rules = fds
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
                # The host limits the CPU time of each cell; a session may use more than that in
                # total.
                entry["rlimits"] = [limit for limit in entry["rlimits"] if limit[0] != RLIMIT_CPU]
            namespaces = {
                "network": net,
                "user": user,
                "mount": mnt,
                "ipc": ipc,
                "uts": uts,
                "cgroup-namespace": cgroup,
            }
            run_guest(entry, (channel, stdin, out, err), namespaces, rules, guest_path)
        close(fds)
        # Until the child is waited for, its process id cannot be reused.
        send_with_pidfd(host, "spawned", child)
        _, status, used = os.wait4(child, 0)
        seconds = used.ru_utime + used.ru_stime
        ended = {"status": status, "cpu_us": int(seconds * 1e6), "peak_bytes": used.ru_maxrss << 10}
        send(host, {"ended": ended})


def send_with_pidfd(host, what, pid):
    """Sends a message with a pidfd of this process, because the host trusts only the kernel's ids.
    """
    pidfd = os.pidfd_open(pid)
    send(host, what, [pidfd])
    os.close(pidfd)


def close(fds):
    for fd in fds:
        os.close(fd)


def run_guest(entry, own_fds, namespaces, rules, guest_path):
    channel = own_fds[0]
    try:
        # THREAT[ZYG-2]: a signal to the guest's own process group reaches nobody else.
        os.setsid()
        confine(entry, own_fds, namespaces, rules)
    except BaseException as error:
        os.write(channel, json.dumps(as_broken(error)).encode() + b"\n")
        os._exit(1)
    os.write(channel, b"1")
    sys.path.extend(guest_path)
    codexec_guest.main(channel)


def confine(entry, own_fds, namespaces, rules):
    channel, stdin, out, err = own_fds
    for layer, fd in namespaces.items():
        enter(layer, fd, entry["lowered"])
    os.chdir("/box/work")
    for fd, number in ((stdin, 0), (out, 1), (err, 2)):
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
        # When memory runs out, the OOM killer should pick the guest.
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
    # If the layer was lowered, the worker shares this namespace with us and there is none to enter.
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
    # Descriptors 0 to 2 are never used for anything but standard streams.
    control = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 10)
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    zygote(socket.socket(fileno=control))
    os._exit(0)
