"""Half precision: by type and by autocast, on every processor."""

import copy
import os
import platform
import subprocess
import sys

import pytest
import torch
from kenmesh_networks import build_batch, build_network, every_switch, score
from places import ROOT


@every_switch
def test_bfloat16(changes):
    model = build_network(dtype=torch.float32, **changes)
    inputs = build_batch(model)
    expected = score(model, inputs)
    half = copy.deepcopy(model).to(torch.bfloat16)
    output = half(**inputs)
    output.loss.backward()
    assert output.logits.dtype == torch.bfloat16 and output.loss.dtype == torch.float32
    torch.testing.assert_close(output.logits.float(), expected, rtol=0.1, atol=0.25)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = model(**inputs)
    mixed.loss.backward()
    torch.testing.assert_close(mixed.logits.float(), expected, rtol=0.1, atol=0.25)
    assert all(weight.grad.dtype == torch.float32 for weight in model.parameters())


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="AVX is of x86 alone")
def test_autocast_on_a_processor_without_half_precision_lstm():
    """oneDNN is told to do without AVX-512, as on many processors of AMD: training and tagging go on."""
    script = """
import torch
from kenmesh_networks import build_batch, build_network, score
from kenmesh_hf.modeling.functional_kenmesh import has_cpu_lstm
model = build_network(dtype=torch.float32)
inputs = build_batch(model)
torch.set_default_dtype(torch.float64)
for dtype in (torch.bfloat16, torch.float16):
    assert not has_cpu_lstm(dtype)
    with torch.autocast("cpu", dtype=dtype):
        mixed = model(**inputs)
        with torch.inference_mode():
            model(**inputs)
    mixed.loss.backward()
    torch.testing.assert_close(mixed.logits.float(), score(model, inputs), rtol=0.1, atol=0.25)
"""
    limits = {"ONEDNN_MAX_CPU_ISA": "AVX2", "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | limits, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
