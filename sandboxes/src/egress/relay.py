"""The sandbox's end of the relay, its only connection to the network while an environment is built.

It listens on the sandbox's own loopback and carries each connection over standard input and output. A frame is its kind
(1 byte), the connection (4), the length of its content (4) and the content. A side sends at most WINDOW bytes of a
connection that the other side has not consumed yet. Programs of the same user cannot open its streams if this Python has
ctypes to request that.
"""

import os
import selectors
import socket
import struct
import sys

READY, OPEN, DATA, CREDIT, END, RESET = range(6)
HEADER = struct.Struct(">BII")
AMOUNT = struct.Struct(">I")
CHUNK = 1 << 16
WINDOW = 1 << 18
MOST = 128

selector = selectors.DefaultSelector()
connections = {}
output = bytearray()


def send(kind, number, content=b""):
    output.extend(HEADER.pack(kind, number, len(content)))
    output.extend(content)


class Connection:
    def __init__(self, number, stream):
        self.number, self.stream = number, stream
        self.credit, self.pending, self.taken = WINDOW, bytearray(), 0
        self.read_ended = self.write_ended = self.shut = False
        self.mask = 0

    def watch(self):
        mask = 0
        if self.credit and not self.read_ended:
            mask |= selectors.EVENT_READ
        if self.pending:
            mask |= selectors.EVENT_WRITE
        if mask == self.mask:
            return
        if not self.mask:
            selector.register(self.stream, mask, self)
        elif mask:
            selector.modify(self.stream, mask, self)
        else:
            selector.unregister(self.stream)
        self.mask = mask

    def work(self, events):
        try:
            if events & selectors.EVENT_READ and self.credit and not self.read_ended:
                data = self.stream.recv(min(CHUNK, self.credit))
                if data:
                    self.credit -= len(data)
                    send(DATA, self.number, data)
                else:
                    self.read_ended = True
                    send(END, self.number)
            if self.pending:
                count = self.stream.send(self.pending)
                del self.pending[:count]
                self.taken += count
                if self.taken >= WINDOW // 2 or not self.pending:
                    send(CREDIT, self.number, AMOUNT.pack(self.taken))
                    self.taken = 0
            if self.write_ended and not self.pending and not self.shut:
                self.shut = True
                self.stream.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            pass
        except OSError:
            send(RESET, self.number)
            return self.close()
        if self.read_ended and self.shut:
            return self.close()
        self.watch()

    def close(self):
        if self.mask:
            selector.unregister(self.stream)
            self.mask = 0
        self.stream.close()
        connections.pop(self.number, None)


def receive(kind, number, content):
    connection = connections.get(number)
    if connection is None:
        return
    if kind == DATA:
        connection.pending.extend(content)
    elif kind == CREDIT:
        connection.credit += AMOUNT.unpack(content)[0]
    elif kind == END:
        connection.write_ended = True
    elif kind == RESET:
        return connection.close()
    connection.work(0)


def main():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(MOST)
    listener.setblocking(False)
    for number in (0, 1):
        os.set_blocking(number, False)
    selector.register(listener, selectors.EVENT_READ, "accept")
    selector.register(0, selectors.EVENT_READ, "input")
    send(READY, listener.getsockname()[1])
    accepting, writing, last, buffer = True, False, 0, bytearray()
    while True:
        if output:
            try:
                count = os.write(1, output[:1 << 20])
                del output[:count]
            except BlockingIOError:
                pass
        if bool(output) != writing:
            writing = not writing
            if writing:
                selector.register(1, selectors.EVENT_WRITE, "output")
            else:
                selector.unregister(1)
        if accepting != (len(connections) < MOST):
            accepting = not accepting
            if accepting:
                selector.register(listener, selectors.EVENT_READ, "accept")
            else:
                selector.unregister(listener)
        for key, events in selector.select():
            if key.data == "accept":
                try:
                    stream = listener.accept()[0]
                except OSError:
                    continue
                stream.setblocking(False)
                stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                last = last % 0xFFFFFFFF + 1
                connections[last] = Connection(last, stream)
                send(OPEN, last)
                connections[last].watch()
            elif key.data == "input":
                data = os.read(0, 1 << 20)
                if not data:
                    return
                buffer.extend(data)
                start = 0
                while len(buffer) - start >= HEADER.size:
                    kind, number, length = HEADER.unpack_from(buffer, start)
                    end = start + HEADER.size + length
                    if len(buffer) < end:
                        break
                    receive(kind, number, bytes(buffer[start + HEADER.size:end]))
                    start = end
                del buffer[:start]
            elif key.data != "output":
                key.data.work(events)


def make_undumpable():
    try:
        import ctypes

        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
    except Exception:
        pass


make_undumpable()
try:
    main()
except OSError as error:
    sys.exit(str(error))
