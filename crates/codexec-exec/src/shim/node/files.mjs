// The directory that a program works in, and renaming folders in it. The user's directory is an
// overlay. It is mounted after this process has started, and mounted anew between the cells of a
// session: a process stays in the old mount until it enters the path again. The kernel refuses to
// rename a folder of the lower layer (EXDEV), so renaming copies the folder and deletes the
// original.
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { max, process, safely, slice } from "./taken.mjs";

const WORK = "/box/work";
const { chdir, cwd } = process;
const { rename, renameSync, lstatSync, statSync, readlinkSync, mkdtempSync, cpSync, rmSync, rmdirSync } = fs;
const { rename: renameLater } = fs.promises;

// The suffixes that the kernel appends to the path of a directory that is gone.
const DELETED = " (deleted)";
const UNKNOWN = "/(unknown)";
// Where the program started.
let start;
export const startDirectory = () => start;

// The path of the current directory, also when the directory is gone.
export const currentDirectory = () => {
  const path = safely(cwd);
  if (path !== undefined) return path;
  const link = safely(() => readlinkSync("/proc/self/cwd")) ?? "";
  const end = max(0, link.length - DELETED.length);
  return slice(link, end) === DELETED ? slice(link, 0, end) : UNKNOWN;
};

// Changes into a directory by its path, and says whether that was possible.
export const enter = (directory) => safely(() => (chdir(directory), true)) === true;

// Enters the directory, which was mounted there while this process waited.
export const startInDirectory = () => {
  // During a remount the process cannot find out its own directory.
  start = enter(WORK) ? WORK : currentDirectory();
  if (safely(() => statSync(WORK).dev !== statSync(path.dirname(WORK)).dev) === true) {
    // Python programs that this one starts leave no bytecode in it.
    process.env.PYTHONDONTWRITEBYTECODE = "1";
  }
};

const asPath = (name) => path.resolve(name instanceof URL ? fileURLToPath(name) : `${name}`);

// True for a folder that would stay in its file system.
const isInOneTree = (from, to) =>
  safely(() => {
    const found = lstatSync(from);
    return found.isDirectory() && found.dev === statSync(path.dirname(to)).dev;
  }) === true;

const move = (error, oldPath, newPath) => {
  const [from, to] = error.code === "EXDEV" ? [asPath(oldPath), asPath(newPath)] : [];
  if (from === undefined || to.startsWith(from + path.sep) || !isInOneTree(from, to)) throw error;
  // Like the kernel: only an empty folder is replaced.
  if (lstatSync(to, { throwIfNoEntry: false }) !== undefined) rmdirSync(to);
  // A new folder can be renamed, so the result appears at once and complete.
  const aside = mkdtempSync(path.join(path.dirname(to), ".moving-"));
  try {
    const made = path.join(aside, path.basename(to));
    cpSync(from, made, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true });
    renameSync(made, to);
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
  rmSync(from, { recursive: true });
};

// Makes the user's folders renameable with all of Node's functions.
export const installFiles = () => {
  fs.renameSync = (oldPath, newPath) => {
    try {
      return renameSync(oldPath, newPath);
    } catch (error) {
      move(error, oldPath, newPath);
    }
  };
  fs.rename = (oldPath, newPath, callback) =>
    typeof callback !== "function"
      ? rename(oldPath, newPath, callback)
      : rename(oldPath, newPath, (error) => {
          let problem = error;
          try {
            if (error?.code === "EXDEV") problem = move(error, oldPath, newPath) ?? null;
          } catch (failed) {
            problem = failed;
          }
          callback(problem);
        });
  fs.promises.rename = async (oldPath, newPath) => {
    try {
      await renameLater(oldPath, newPath);
    } catch (error) {
      move(error, oldPath, newPath);
    }
  };
  syncBuiltinESMExports();
};
