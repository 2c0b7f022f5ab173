"""The directory that a program works in, and renaming folders in it.

The user's directory is an overlay. It is mounted after this process has started, and mounted anew
between the cells of a session: a process stays in the old mount until it enters the path again. The
kernel refuses to rename a folder of the lower layer (EXDEV), so renaming copies the folder and
deletes the original.
"""

import errno
import os
import pathlib
import shutil
import stat
import tempfile

WORK = "/box/work"
# Where the program started.
start_directory = None

# What the kernel writes behind the path of a directory that is gone.
_DELETED = " (deleted)"
_UNKNOWN = "/(unknown)"

_chdir, _getcwd, _readlink = os.chdir, os.getcwd, os.readlink
_rename, _replace = os.rename, os.replace


def start():
    """Enters the directory, which was mounted there while this process waited."""
    global start_directory
    # Where it is mounted anew at this moment, the process itself cannot find out where it is.
    start_directory = WORK if enter(WORK) else current_directory()
    try:
        is_users = os.stat(WORK).st_dev != os.stat(os.path.dirname(WORK)).st_dev
    except OSError:
        return
    if is_users:
        # Child processes leave no bytecode in it; our own imports never do.
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def enter(directory):
    """Changes into a directory by its path, and says whether that was possible."""
    try:
        _chdir(directory)
    except OSError:
        return False
    return True


def current_directory():
    """The path of the current directory, also when the directory is gone."""
    try:
        return _getcwd()
    except OSError:
        pass
    try:
        path = _readlink("/proc/self/cwd")
    except OSError:
        path = ""
    return path[: -len(_DELETED)] if path.endswith(_DELETED) else _UNKNOWN


def install():
    """Makes the user's folders renameable with all of Python's functions."""
    os.rename, os.replace = _falling_back(_rename), _falling_back(_replace)
    # Until Python 3.9, `pathlib` has captured the functions before us.
    accessor = getattr(pathlib, "_NormalAccessor", None)
    if accessor is not None and hasattr(accessor, "rename"):
        accessor.rename, accessor.replace = staticmethod(os.rename), staticmethod(os.replace)


def _falling_back(rename):
    def rename_or_move(src, dst, *, src_dir_fd=None, dst_dir_fd=None):
        try:
            return rename(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        except OSError as error:
            is_plain = src_dir_fd is None and dst_dir_fd is None
            if error.errno != errno.EXDEV or not is_plain or not _is_in_one_tree(src, dst):
                raise
            _move(os.fsdecode(src), os.fsdecode(dst))

    rename_or_move.__name__ = rename_or_move.__qualname__ = rename.__name__
    rename_or_move.__doc__ = rename.__doc__
    return rename_or_move


def _is_in_one_tree(src, dst):
    """True if this is a folder that would stay in its file system."""
    try:
        found = os.lstat(src)
        above = os.stat(os.path.dirname(os.path.abspath(os.fsdecode(dst))))
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_dev == above.st_dev


def _move(src, dst):
    src, dst = os.path.abspath(src), os.path.abspath(dst)
    if dst.startswith(src + os.sep):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), src, None, dst)
    if os.path.lexists(dst):
        # Like the kernel: only an empty folder is replaced.
        os.rmdir(dst)
    # A new folder can be renamed, so the result appears at once and complete.
    aside = tempfile.mkdtemp(prefix=".moving-", dir=os.path.dirname(dst))
    try:
        made = os.path.join(aside, os.path.basename(dst))
        shutil.copytree(src, made, symlinks=True)
        _rename(made, dst)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    shutil.rmtree(src)
