# A service that is wrong in a way of its own at each connection. It serves many at a time.
import array, mmap, os, random, socket, struct, sys, threading, time
def vi(n):
    out = b""
    while n > 0x7f: out += bytes([n & 0x7f | 0x80]); n >>= 7
    return out + bytes([n])
def u(f, n): return vi(f << 3) + vi(n)
def s(f, b): return vi(f << 3 | 2) + vi(len(b)) + b
def frame(request, body): body = u(2, request) + body; return struct.pack("<I", len(body)) + body
names = [b"InitializeConnection", b"RegisterDataSource", b"UpdateDataSource", b"CommitData", b"GetAsyncCommand",
         b"RegisterTraceWriter", b"UnregisterTraceWriter", b"NotifyDataSourceStarted", b"NotifyDataSourceStopped"]
bound = s(4, u(1, 1) + u(2, 9) + b"".join(s(3, u(1, n + 1) + s(2, name)) for n, name in enumerate(names)))
def command(c, more=1): return frame(3, s(6, u(1, 1) + u(2, more) + s(3, c)))
def start(id, buffer=1, config=b""): return command(s(1, u(1, id) + s(2, s(1, b"track_event") + u(2, buffer) + s(113, config))))
def anything(random):
    id, lists = random.randrange(1, 5), b"".join(s(random.randrange(1, 5), random.choice([b"*", b"net", b"d*", b"slow"])) for _ in range(random.randrange(4)))
    bytes = bytearray(random.choice([start(id, random.randrange(1, 4), lists), command(s(2, u(1, id))), command(s(5, u(1, id) + u(2, random.randrange(9)))), command(s(7, u(1, id)))]))
    for _ in range(random.choice([0, 0, 0, 1, 1, 2, 9])):
        at = random.randrange(4, len(bytes)) if random.random() < 0.9 else random.randrange(len(bytes))
        if random.random() < 0.7: bytes[at] ^= 1 << random.randrange(8)
        else: bytes[at:] = random.choice([bytes[at + 1 :], bytes[at:] * 2, b"", random.randbytes(9) + bytes[at:]])
        if len(bytes) < 5: break
    if random.random() < 0.8 and len(bytes) >= 4: bytes[:4] = struct.pack("<I", len(bytes) - 4)
    return bytes
def serve(peer, n):
    own = random.Random(n)
    peer.settimeout(10); fds = []
    def hear():
        data, anc, _, _ = peer.recvmsg(65536, 4096)
        for _, _, numbers in anc:
            a = array.array("i"); a.frombytes(numbers[: len(numbers) // 4 * 4]); fds.extend(a)
        return data
    def quiet(seconds):
        until = time.time() + seconds
        peer.settimeout(0.1)
        while time.time() < until:
            try:
                if not hear(): return
            except TimeoutError: pass
    try:
        kind = n if n < 14 else 14
        if kind == 0: return
        hear()
        if kind == 1: peer.sendall(os.urandom(500)); quiet(0.3); return
        if kind == 2: peer.sendall(struct.pack("<I", 0xffffffff)); quiet(0.3); return
        if kind == 3: peer.sendall(frame(1, s(4, u(1, 0)))); quiet(0.3); return
        whole = frame(1, bound)
        if kind == 4: peer.sendall(whole[: len(whole) // 2]); return
        for byte in range(0, len(whole), 7): peer.sendall(whole[byte : byte + 7])
        hear()
        if kind == 5: peer.sendall(frame(2, s(6, u(1, 0)))); quiet(0.3); return
        peer.sendall(frame(2, s(6, u(1, 1) + s(3, u(1, 1)))))
        hear()
        memory = mmap.mmap(fds[0], os.fstat(fds[0]).st_size)
        for size in (0, 4096, 1 << 30):
            try: os.ftruncate(fds[0], size); os.write(2, b"the memory changed its size"); os._exit(1)
            except OSError: pass
        if kind == 6: peer.sendall(b"".join(start(id) for id in range(200))); quiet(1)
        elif kind == 7: peer.sendall(start(1)); quiet(0.3); peer.sendall(b"".join(command(s(5, u(2, f))) for f in range(500))); quiet(1)
        elif kind == 8:  # it changes the memory as the process writes it
            peer.sendall(start(1)); until = time.time() + 1
            while time.time() < until:
                at = own.randrange(len(memory) - 64); memory[at : at + 64] = os.urandom(64)
        elif kind == 9: peer.sendall(start(1)); quiet(0.2); memory[:] = b"\xff" * len(memory); quiet(4)  # no page is free
        elif kind == 10: peer.sendall(start(1)); time.sleep(4)  # it takes no call
        elif kind == 11: peer.sendall(start(1, 1, os.urandom(300)) + command(os.urandom(200)) + command(s(2, u(1, 77)))); quiet(0.5)
        elif kind == 12: peer.sendall(start(1) + start(2, 2, s(1, b"*") + s(2, b"net")) + command(s(2, u(1, 1))) + command(s(7, u(1, 2)))); quiet(0.5)
        elif kind == 13: peer.sendall(start(1)); quiet(0.2); peer.sendall(start(1)[: n % 50])
        else:  # damaged commands, after the time at which the process takes the service for one that works
            quiet(0.6); peer.sendall(b"".join(anything(own) for _ in range(own.randrange(1, 9)))); quiet(own.random() / 5)
        memory.close()
    except (BrokenPipeError, ConnectionResetError, TimeoutError): pass
    finally:
        for fd in fds: os.close(fd)
        peer.close()
door = socket.socket(socket.AF_UNIX); door.bind(sys.argv[1]); door.listen(64)
open(sys.argv[1] + ".ready", "w")
threads = []
for n in range(int(sys.argv[2])):
    peer, _ = door.accept()
    threads.append(threading.Thread(target=serve, args=(peer, n))); threads[-1].start()
    threads = [thread for thread in threads if thread.is_alive()]
for thread in threads: thread.join()
