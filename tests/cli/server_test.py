#!/usr/bin/env python3
"""The sample server on the emulated GPU: answers, bad requests, clean end. Usage: server_test.py BUILD_DIR SOURCE_DIR"""
import http.client
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import unittest

BUILD, SOURCE = (pathlib.Path(p) for p in sys.argv[1:3])
BATCH = 4


class ServerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        environment = dict(os.environ, LD_LIBRARY_PATH=str(BUILD / "emulator"))
        environment.pop("LD_PRELOAD", None)
        cls.process = subprocess.Popen([BUILD / "bin/inference_server", "--port", "0", "--max-batch", str(BATCH)],
                                       env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = cls.process.stdout.readline()
        if not line.startswith("listening on "):
            cls.process.kill()
            raise RuntimeError(f"no start: {line} {cls.process.stderr.read()}")
        cls.port = int(line.split()[2].rsplit(":", 1)[1])
        data = (SOURCE / "samples/inference_server/data/digits.bin").read_bytes()
        cls.count, = struct.unpack_from("<I", data, 4)
        cls.images, cls.labels = data[8:8 + 64 * cls.count], data[8 + 64 * cls.count:]

    @classmethod
    def tearDownClass(cls):
        if cls.process.poll() is None:
            cls.process.kill()
        cls.process.wait()
        cls.process.stdout.close()
        cls.process.stderr.close()

    def request(self, method, path, body=None, accept=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, {"Accept": accept} if accept else {})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def test_binary_and_json_say_the_same(self):
        body = self.images[:64 * BATCH]
        status, raw = self.request("POST", "/classify", body, "application/octet-stream")
        self.assertEqual((status, len(raw)), (200, BATCH * 40))
        status, text = self.request("POST", "/classify", body)
        self.assertEqual(status, 200)
        answer = json.loads(text)
        flat = [p for row in answer["probabilities"] for p in row]
        self.assertEqual(struct.pack(f"<{BATCH * 10}f", *flat), raw)
        self.assertEqual(answer["labels"], [max(range(10), key=row.__getitem__) for row in answer["probabilities"]])
        for row in answer["probabilities"]:
            self.assertAlmostEqual(sum(row), 1.0, places=5)

    def test_most_digits_are_right(self):
        right = 0
        for i in range(0, 40, BATCH):
            _, text = self.request("POST", "/classify", self.images[64 * i:64 * (i + BATCH)])
            right += sum(a == b for a, b in zip(json.loads(text)["labels"], self.labels[i:i + BATCH]))
        self.assertGreaterEqual(right, 36)

    def test_an_answer_does_not_depend_on_the_batch(self):
        _, together = self.request("POST", "/classify", self.images[:64 * BATCH], "application/octet-stream")
        _, alone = self.request("POST", "/classify", self.images[64:128], "application/octet-stream")
        self.assertEqual(together[40:80], alone)

    def test_bad_bodies_get_a_reason(self):
        for body, status in ((b"", 400), (b"x" * 63, 400), (b"\x01" * 65, 400), (b"\x11" * 64, 400),
                             (b"\xff" * 64, 400), (b"\x00" * 64 * (BATCH + 1), 413)):
            got, answer = self.request("POST", "/classify", body)
            self.assertEqual(got, status, body[:4])
            self.assertTrue(json.loads(answer)["error"])

    def test_huge_body_is_refused(self):
        try:
            status, _ = self.request("POST", "/classify", b"\x00" * 4_000_000)
            self.assertEqual(status, 413)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before it was all sent
        self.assertEqual(self.request("GET", "/healthz")[0], 200)

    def test_unknown_paths_and_methods(self):
        self.assertEqual(self.request("GET", "/")[0], 404)
        self.assertEqual(self.request("GET", "/classify")[0], 404)
        self.assertEqual(self.request("POST", "/healthz", b"x")[0], 404)

    def test_health(self):
        status, text = self.request("GET", "/healthz")
        health = json.loads(text)
        self.assertEqual((status, health["status"], health["max_batch"]), (200, "ok", BATCH))
        self.assertTrue(health["device"])

    def test_zz_sigterm_ends_it_cleanly(self):
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(timeout=30), 0)


class ArgumentTest(unittest.TestCase):
    def test_wrong_arguments_are_two(self):
        for args in (["--port", "x"], ["--port", "70000"], ["--port"], ["--max-batch", "0"], ["--frob"]):
            p = subprocess.run([BUILD / "bin/inference_server", *args], capture_output=True, text=True)
            self.assertEqual(p.returncode, 2, args)
            self.assertEqual(p.stderr.count("\n"), 1, p.stderr)

    def test_no_driver_is_said(self):
        environment = dict(os.environ, LD_LIBRARY_PATH="/nonexistent", CUDA_VISIBLE_DEVICES="")
        p = subprocess.run([BUILD / "bin/inference_server", "--port", "0"], env=environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(p.returncode, 1)
        self.assertIn("inference_server: ", p.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
