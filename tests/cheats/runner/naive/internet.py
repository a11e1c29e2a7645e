# Stands for the internet that a naive grader leaves open: the upstream file on one port, a model that answers on another.
# It goes to the background once it listens.
import http.server
import json
import os
import threading

import reference


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open("reference.py", "rb") as file:
            self.answer(file.read())

    def do_POST(self):
        prompt = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["prompt"]
        self.answer(json.dumps({"response": eval(prompt, vars(reference))}).encode())

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


servers = [http.server.HTTPServer(("127.0.0.1", port), Answers) for port in (8000, 11434)]
if os.fork() == 0:
    threading.Thread(target=servers[0].serve_forever).start()
    servers[1].serve_forever()
