"""The packed model returns the hidden states of transformers' BERT and MPNet, also on another device."""

from __future__ import annotations

import json
import mmap
import os
import random
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from models.encoder import number_formats
from models.encoder.added_tokens import extend_embedding, first_added
from models.encoder.model import Encoder
from models.encoder.packed.bert import PIECES, Linear, PackedBert
from models.encoder.packed.weights import load_packed
from models.encoder.weights import ADAPTER, WEIGHTS
from models.ner.status_head import N_RULES, Pieces, Places, StatusHead
from models.types import STATUSES
from tests.models import tiny

ROOT = Path(__file__).parents[3]
#: Pieces of a sequence: none, one, many of one length, and more than one forward pass holds.
LENGTHS = [0, 1, 30, 7, 7, 7, 12, 0, 1, 30, 29, 3]


@pytest.fixture(scope="module")
def packed(tiny_bert: str) -> Encoder:
    encoder = Encoder.for_inference(tiny_bert, max_pieces=32)
    assert isinstance(encoder.model, PackedBert)
    return encoder


def sequences(lengths: list[int] = LENGTHS) -> list[list[int]]:
    rng = random.Random(3)
    return [[rng.randrange(5, 60) for _ in range(n)] for n in lengths]


def furthest(one: list[Tensor], other: list[Tensor]) -> float:
    """The largest difference between the values of two lists of tensors of equal shapes."""
    assert [t.shape for t in one] == [t.shape for t in other]
    return max(float((a - b).abs().max()) for a, b in zip(one, other, strict=True) if a.numel())


@pytest.mark.parametrize("base", ["tiny_bert", pytest.param("mini", marks=pytest.mark.slow)])
def test_hidden_states_are_those_of_transformers(base: str, tiny_bert: str) -> None:
    """Of random weights, and of the base of the bundled releases."""
    base = tiny_bert if base == "tiny_bert" else base
    own, theirs = (load(base, max_pieces=tiny.POSITIONS) for load in (Encoder.for_inference, Encoder.load))
    assert isinstance(own.model, PackedBert) and not isinstance(theirs.model, PackedBert)
    many = [*sequences(LENGTHS * (2 * PIECES // sum(LENGTHS))), [5] * 290]
    with torch.inference_mode():
        assert furthest(own.encode_pieces(many), theirs.encode_pieces(many)) < 1e-5
    assert own.encode_pieces([]) == []
    assert own.embed([]).shape == (0, own.dimension)


def test_batches_change_no_vector(packed: Encoder) -> None:
    together = packed.pool(sequences())
    alone = torch.cat([packed.pool([s]) for s in sequences()])
    assert (together - alone).abs().max() < 1e-6


def changes(kind: str, folder: Path, base: str) -> dict[str, Any]:
    """A file of a release that changes weights of the tiny BERT: linear layers, norms and embeddings."""
    torch.manual_seed(5)
    stored = load_file(Path(base) / "model.safetensors")
    path = folder / (WEIGHTS if kind == "weights" else ADAPTER)
    query, norm = "encoder.layer.1.attention.self.query", "encoder.layer.0.output.LayerNorm.bias"
    if kind == "weights":
        save_file({n: t + torch.randn_like(t) / 20 for n, t in stored.items() if "pooler" not in n}, path)
        return {"weights": path}
    tensors = {
        f"{query}.lora_a": torch.randn(2, 32).half(),
        f"{query}.lora_b": torch.randn(32, 2).half() / 5,
        f"{query}.weight.delta": torch.randint(-9, 9, (32, 32), dtype=torch.int8),
        f"{query}.weight.scale": torch.full((32,), 0.01).half(),
        f"{norm}.delta": torch.randn(32).half(),
    }
    if kind == "embeddings":
        name = "embeddings.word_embeddings.weight"
        tensors[f"{name}.delta"] = torch.randn_like(stored[name]) / 5
    save_file(tensors, path)
    return {"adapter": path}


@pytest.mark.parametrize("kind", ["weights", "adapter", "embeddings"])
def test_what_a_release_changes_is_merged_as_for_transformers(
    kind: str, tiny_bert: str, tmp_path: Path, packed: Encoder
) -> None:
    files = changes(kind, tmp_path, tiny_bert)
    own, theirs = (
        load(tiny_bert, max_pieces=32, **files).encode_pieces(sequences())
        for load in (Encoder.for_inference, Encoder.load)
    )
    with torch.inference_mode():
        assert furthest(own, theirs) < 1e-5
        assert furthest(own, packed.encode_pieces(sequences())) > 0.01


def test_the_files_of_a_release_do_not_change_those_of_the_base(tiny_bert: str, tmp_path: Path) -> None:
    path = Path(tiny_bert) / "model.safetensors"
    before = path.read_bytes()
    load_packed(tiny_bert, **changes("embeddings", tmp_path, tiny_bert))
    assert path.read_bytes() == before


def test_releases_of_one_base_share_what_they_do_not_change(tiny_bert: str, tmp_path: Path) -> None:
    base = load_packed(tiny_bert)
    assert base is load_packed(tiny_bert)
    for kind, shares in (("adapter", True), ("embeddings", False)):
        changed = load_packed(tiny_bert, **changes(kind, tmp_path, tiny_bert))
        assert base is not None and changed is not None
        assert (base.embeddings is changed.embeddings) is shares
        assert changed.dtype == torch.float32
    path = tmp_path / ADAPTER
    save_file({"encoder.layer.1.output.LayerNorm.bias.delta": torch.ones(32)}, path)
    first, other = load_packed(tiny_bert), load_packed(tiny_bert, adapter=path)
    in_16_bits = load_packed(tiny_bert, dtype=torch.bfloat16, adapter=path)
    assert first is not None and other is not None and in_16_bits is not None
    assert [a is b for a, b in zip(first.layers, other.layers, strict=True)] == [True, False]
    assert not torch.equal(first.layers[1].outer_norm.bias, other.layers[1].outer_norm.bias)
    assert in_16_bits.layers[0].inner.bias.dtype == torch.bfloat16


def test_added_tokens_have_rows_and_leave_the_shared_model_alone(packed: Encoder, tiny_bert: str) -> None:
    own, plain = Encoder(packed.model, packed.tokenizer, 32), packed.model
    rows = plain.embeddings.words[[5, 6]]
    extend_embedding(own, plain.vocabulary_size, rows)
    first = first_added(own)
    states = own.encode_pieces([[7, first, first + 1]])
    assert furthest(states, packed.encode_pieces([[7, 5, 6]])) < 1e-6
    assert packed.model is plain and plain.added is None
    with pytest.raises(ValueError, match="rows of added tokens"):
        extend_embedding(own, first, torch.zeros(2, 7))


def test_an_mpnet_is_packed_with_its_relative_positions(tiny_mpnet: str, tmp_path: Path) -> None:
    """Distances below and above those of which each has its bias, and from which on all have one."""
    name = "encoder.relative_attention_bias.weight"
    delta = torch.randn(load_file(Path(tiny_mpnet) / "model.safetensors")[name].shape) * 3
    path = tmp_path / ADAPTER
    save_file({f"{name}.delta": delta}, path)
    many = sequences([*LENGTHS, 7, 9, 17, 100, 130, 190, 290])
    texts = ["The pain, drug", "", "déjà-vu <s> 20mg"]
    encoded = []
    options: list[dict[str, Any]] = [{}, {"adapter": path}]
    for files in options:
        own, theirs = (
            load(tiny_mpnet, max_pieces=tiny.POSITIONS, **files)
            for load in (Encoder.for_inference, Encoder.load)
        )
        assert isinstance(own.model, PackedBert)
        assert own.with_special([[5]]) == theirs.with_special([[5]])
        assert own.pieces_at(texts) == theirs.pieces_at(texts)
        with torch.inference_mode():
            encoded.append(own.encode_pieces(many))
            assert furthest(encoded[-1], theirs.encode_pieces(many)) < 1e-5
    assert furthest(*encoded) > 0.01


@pytest.mark.parametrize("block", [16, 384])
def test_an_encoder_of_larger_layers_is_packed_in_16_bits(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Layers of more inputs than a block have products in 32 bits, which are the inputs of others."""
    monkeypatch.setattr(number_formats, "BLOCK", block)
    base = tiny.mpnet(tmp_path)
    in_16_bits, exact = (
        Encoder.for_inference(base, max_pieces=32, dtype=dtype).encode_pieces(sequences())
        for dtype in (torch.bfloat16, torch.float32)
    )
    assert 0 < furthest(in_16_bits, exact) < 0.1


def test_another_family_goes_through_transformers(tmp_path: Path) -> None:
    base = tiny.roberta(tmp_path)
    assert load_packed(base) is None
    vectors = [
        load(base, max_pieces=32).embed(["the pain", "drug"])
        for load in (Encoder.for_inference, Encoder.load)
    ]
    assert torch.equal(*vectors)


@pytest.mark.parametrize("change", [{"hidden_act": "relu"}, {"is_decoder": True}, {"num_hidden_layers": 3}])
def test_a_bert_of_another_kind_goes_through_transformers(
    change: dict[str, object], tiny_bert: str, tmp_path: Path
) -> None:
    shutil.copytree(tiny_bert, tmp_path / "bert")
    path = tmp_path / "bert" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | change))
    assert load_packed(str(tmp_path / "bert")) is None


@pytest.mark.skipif(not torch.cpu._is_avx512_bf16_supported(), reason="this CPU has no AVX512 bfloat16")
def test_a_text_has_the_same_bits_alone_and_in_a_batch_in_bfloat16() -> None:
    encoder = Encoder.for_inference("mini", dtype=torch.bfloat16)
    rows = sequences([*LENGTHS, 100, 61])
    alone = torch.cat([encoder.pool([s]) for s in rows])
    assert torch.equal(encoder.pool(rows), alone)


def on_gpu(part: Any, dtype: torch.dtype = torch.float32) -> Any:
    """Weights of the same shapes on a GPU, products in 16 bits."""
    if part is None:
        return None
    if isinstance(part, Tensor):
        return torch.empty(part.shape, dtype=dtype, device="cuda")
    if isinstance(part, Linear):
        return Linear(
            tuple(on_gpu(w, torch.bfloat16) for w in part.weights), on_gpu(part.bias, torch.bfloat16)
        )
    if isinstance(part, tuple):
        return type(part)(*map(on_gpu, part))
    return type(part)(**{f.name: on_gpu(getattr(part, f.name)) for f in fields(part)})


def moved(model: PackedBert) -> PackedBert:
    return PackedBert(model.config, on_gpu(model.embeddings), [on_gpu(layer) for layer in model.layers])


def test_a_pass_is_on_the_device_of_the_weights(tiny_bert: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is copied to the device is pinned first: pieces and positions."""
    pinned: list[tuple[int, ...]] = []

    def pin(values: Tensor) -> Tensor:
        pinned.append(tuple(values.shape))
        return values

    monkeypatch.setattr(Tensor, "pin_memory", pin)
    model = load_packed(tiny_bert)
    assert model is not None
    with FakeTensorMode(allow_non_fake_inputs=True):
        packed = moved(model)
        assert (packed.device.type, packed.dtype) == ("cuda", torch.bfloat16)
        groups = list(packed.run([[2, 5, 3], [2, 6, 3], [2, 5, 6, 3]]))
    assert pinned == [(10,), (10,)]
    assert [(members, tuple(hidden.shape)) for members, hidden in groups] == [
        ([0, 1], (2, 3, 32)),
        ([2], (1, 4, 32)),
    ]
    assert {(hidden.device.type, hidden.dtype) for _, hidden in groups} == {("cuda", torch.float32)}


def test_the_head_of_statuses_computes_where_the_hidden_states_are() -> None:
    places = [Places(Pieces(0, 4), [Pieces(0, 2)], []), Places(Pieces(4, 9), [Pieces(5, 6)], [Pieces(7, 9)])]
    with FakeTensorMode(), torch.device("cuda"):
        head = StatusHead(16)
        logits = head.statuses(torch.empty(9, 16), places, torch.empty(2, N_RULES))
    assert (logits.device.type, tuple(logits.shape)) == ("cuda", (2, len(STATUSES)))


def test_attention_on_a_gpu_is_not_given_to_cudnn_first() -> None:
    # The name is PyTorch's: a library that does not know it would ignore it.
    assert os.environ["TORCH_CUDNN_SDPA_DEPRIORITIZED"] == "1"
    library = Path(torch.__file__).parent / "lib/libtorch_cuda.so"
    if not library.exists():
        pytest.skip("this PyTorch is without CUDA")
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        assert content.find(b"TORCH_CUDNN_SDPA_DEPRIORITIZED") >= 0
