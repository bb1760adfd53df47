# Damages what either end sends, and passes the rest on.
import os, random, socket, sys, threading, time
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()  # ends with the test
door = socket.socket(socket.AF_UNIX); door.bind(sys.argv[1]); door.listen(16)
open(sys.argv[1] + ".ready", "w")
def pump(source, sink, n, way):
    own, began = random.Random(n * 2 + way), time.time()
    try:
        while True:
            data, files, _, _ = source.recvmsg(1 << 17, 256)
            if not data: break
            if n < int(sys.argv[3]) and time.time() - began > 0.8 and own.random() < 0.5:
                data, at = bytearray(data), own.randrange(len(data))
                what = own.randrange(5)
                if what < 2: data[at] ^= 1 << own.randrange(8)
                elif what == 2: data[at:at] = own.randbytes(own.randrange(1, 20))
                elif what == 3: del data[at:]
                else: data = data[:at] + data[at:] * 2
            if data: sink.sendmsg([data], files)
    except OSError: pass
    for end in (source, sink):
        try: end.shutdown(socket.SHUT_RDWR)
        except OSError: pass
n = 0
while True:
    peer, _ = door.accept()
    service = socket.socket(socket.AF_UNIX)
    try: service.connect(sys.argv[2])
    except OSError: peer.close(); continue
    for source, sink, way in ((peer, service, 0), (service, peer, 1)):
        threading.Thread(target=pump, args=(source, sink, n, way), daemon=True).start()
    n += 1
    if n > int(sys.argv[3]): open(sys.argv[1] + ".over", "w")
