#!/usr/bin/env bash
# Remakes the fixtures (CUDA 13.0; PTXAS12 = a ptxas of CUDA 12 for the older cubin form) and, with nvdisasm and
# cuobjdump on PATH, expected.txt. Not part of the build: the results are committed.
set -euo pipefail
cd "$(dirname "$0")"
for a in 75 80 90 100 120; do nvcc -cubin -arch=sm_$a probe.cu -o probe_$a.cubin; done
ptxas -arch=sm_100 packed.ptx -o packed_100.cubin
nvcc -ptx -arch=compute_75 probe.cu -o probe.tmp.ptx
sed -i 's/^\.version .*/.version 8.4/' probe.tmp.ptx
"${PTXAS12:?}" -arch=sm_90 probe.tmp.ptx -o older_90.cubin
rm probe.tmp.ptx
nvcc -rdc=true -arch=sm_90 -cubin helper.cu -o helper.tmp.cubin
nvcc -dlink -arch=sm_90 -cubin helper.tmp.cubin -o linked_90.cubin
rm helper.tmp.cubin
targets="-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=compute_90 -gencode arch=compute_100f,code=compute_100f"
for mode in none speed size; do nvcc -fatbin $targets --compress-mode=$mode --ptxas-options=-maxrregcount=40 helper.cu -o $mode.fatbin; done
nvcc -c -cudart none -gencode arch=compute_90,code=[compute_90,sm_90] helper.cu -o object.o
strip --strip-debug object.o
python3 expect.py *.cubin > expected.txt
