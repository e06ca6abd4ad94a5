"""Serves a model file by llama.cpp's server, with the OpenAI API: serve.py FILE. The last line it prints is "listening",
a space and the address; it serves until it is stopped."""

import sys
import time

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.model_alias = {"smollm2"}
params.hostnames, params.port = ["127.0.0.1"], 0
params.n_ctx, params.n_parallel = 1024, 1
# One thread: two wait for each other at each layer, and stand still on a busy machine.
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.n_gpu_layers = 0
params.use_jinja = True
params.sampling.seed = 1
server = xllamacpp.Server(params)
print("listening", server.listening_address, flush=True)
while True:
    time.sleep(60)
