"""A file system that shows SOURCE at MOUNT: `passing_folder.py SOURCE MOUNT [DELAY]`, until it is unmounted. Stopped (SIGSTOP), it is a file server that is
away: whoever touches MOUNT waits until it goes on. With DELAY each answer takes so many seconds: a server that is slow. Needs FUSE and fusepy (tools/packages.txt, group "test")."""
import errno
import os
import sys
import time

from fusepy import FUSE, FuseOSError, Operations


class PassingFolder(Operations):
    def __init__(self, source, delay=0):
        self.source, self.delay = source, delay

    def path(self, path):
        return self.source + path

    def __call__(self, operation, *arguments):
        time.sleep(self.delay)
        try:
            return super().__call__(operation, *arguments)
        except OSError as error:
            raise FuseOSError(error.errno or errno.EIO) from error

    def access(self, path, mode):
        if not os.access(self.path(path), mode):
            raise FuseOSError(errno.EACCES)

    def getattr(self, path, handle=None):
        found = os.lstat(self.path(path))
        return {name: getattr(found, name) for name in ("st_atime", "st_ctime", "st_gid", "st_mode", "st_mtime", "st_nlink", "st_size", "st_uid")}

    def statfs(self, path):
        found = os.statvfs(self.path(path))
        return {name: getattr(found, name) for name in ("f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_favail", "f_ffree", "f_files", "f_frsize", "f_namemax")}

    def readdir(self, path, handle):
        return [".", "..", *os.listdir(self.path(path))]

    def readlink(self, path):
        return os.readlink(self.path(path))

    def mkdir(self, path, mode):
        os.mkdir(self.path(path), mode)

    def rmdir(self, path):
        os.rmdir(self.path(path))

    def unlink(self, path):
        os.unlink(self.path(path))

    def symlink(self, path, target):
        os.symlink(target, self.path(path))

    def rename(self, old, new):
        os.rename(self.path(old), self.path(new))

    def link(self, path, target):
        os.link(self.path(target), self.path(path))

    def chmod(self, path, mode):
        os.chmod(self.path(path), mode)

    def chown(self, path, user, group):
        os.chown(self.path(path), user, group)

    def utimens(self, path, times=None):
        os.utime(self.path(path), times)

    def open(self, path, flags):
        return os.open(self.path(path), flags & ~os.O_APPEND)

    def create(self, path, mode, info=None):
        return os.open(self.path(path), os.O_RDWR | os.O_CREAT, mode)

    def read(self, path, size, offset, handle):
        return os.pread(handle, size, offset)

    def write(self, path, data, offset, handle):
        return os.pwrite(handle, data, offset)

    def truncate(self, path, length, handle=None):
        os.truncate(self.path(path), length)

    def fsync(self, path, only_data, handle):
        os.fsync(handle)

    flush = None  # closing a file asks nobody, as on NFS where nothing is to be written back

    def release(self, path, handle):
        os.close(handle)


if __name__ == "__main__":
    FUSE(PassingFolder(os.path.abspath(sys.argv[1]), *map(float, sys.argv[3:])), sys.argv[2], foreground=True, nothreads=True, attr_timeout=0, entry_timeout=0)
