"""A rank that a launcher starts, as a fork of an interpreter that has imported a framework.

forked.py ADDRESS PROGRAM ARGUMENT...: asks for it at preloaded.py's address, and stands for it until
it ends: with its input, its output and its end. Who kills this process kills it too.
"""
import json
import os
import socket
import sys

connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
connection.connect(sys.argv[1])
rank = {"arguments": sys.argv[2:], "environment": dict(os.environ)}
socket.send_fds(connection, [json.dumps(rank).encode()], [0, 1, 2])
connection.recv(4096)  # its pid
code = json.loads(connection.recv(4096))["code"]
if code < 0:
    os.kill(os.getpid(), -code)
sys.exit(code)
