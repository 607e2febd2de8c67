"""A daemon that seems to be older: its WELCOME names some features less."""
import contextlib
import threading

import zmq

from front_driver import qk


@contextlib.contextmanager
def without(daemon, *features):
    """An endpoint before that of the daemon, to be given to one program after the other."""
    context, over = zmq.Context(), threading.Event()
    front = context.socket(zmq.ROUTER)
    front.bind('tcp://127.0.0.1:*')
    endpoint = front.getsockopt_string(zmq.LAST_ENDPOINT)

    def serve():
        poller, behind = zmq.Poller(), {}  # a socket for each client
        poller.register(front, zmq.POLLIN)
        while not over.is_set():
            for socket, _ in poller.poll(50):
                if socket is front:
                    who, *frames = front.recv_multipart()
                    if who not in behind:
                        behind[who] = context.socket(zmq.DEALER)
                        behind[who].connect(daemon.endpoint)
                        poller.register(behind[who], zmq.POLLIN)
                    behind[who].send_multipart(frames)
                    continue
                frames = socket.recv_multipart()
                message = qk.ServerMessage.FromString(frames[-1])
                if message.WhichOneof('body') == 'welcome':
                    kept = [f for f in message.welcome.feature if f not in features]
                    message.welcome.feature[:] = kept
                    frames[-1] = message.SerializeToString()
                front.send_multipart([next(who for who, s in behind.items() if s is socket)] + frames)
        context.destroy(linger=0)
    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield endpoint
    finally:
        over.set()
        thread.join()
