"""Checkpoints in the layouts of timm and of Hugging Face."""
import numpy as np
import pytest
from dx_model import ModelFileError
from dx_model.vit import ViT, ViTConfig, to_checkpoint
from dx_model.vit.checkpoints import checkpoint_name
from test_vit import generic, images_of

CONFIG = ViTConfig(image_size=(12, 12), num_channels=3, patch_size=4, num_classes=5, hidden_size=12,
                   num_hidden_layers=2, num_attention_heads=3, intermediate_size=20, hidden_act="gelu_erf",
                   layer_norm_eps=1e-6)


@pytest.mark.parametrize("layout", ["timm", "huggingface"])
def test_there_and_back(layout):
    model = generic(CONFIG)
    again = ViT.from_checkpoint(to_checkpoint(model.parameters, layout), num_attention_heads=3, layer_norm_eps=1e-6)
    assert again.config == CONFIG and again.parameters.digest() == model.parameters.digest()


def test_names_and_shapes_of_timm():
    tensors = to_checkpoint(generic(CONFIG).parameters, "timm")
    assert {name: array.shape for name, array in tensors.items() if "blocks.1" not in name} == {
        "patch_embed.proj.weight": (12, 3, 4, 4), "patch_embed.proj.bias": (12,), "cls_token": (1, 1, 12),
        "pos_embed": (1, 10, 12), "blocks.0.norm1.weight": (12,), "blocks.0.norm1.bias": (12,),
        "blocks.0.attn.qkv.weight": (36, 12), "blocks.0.attn.qkv.bias": (36,), "blocks.0.attn.proj.weight": (12, 12),
        "blocks.0.attn.proj.bias": (12,), "blocks.0.norm2.weight": (12,), "blocks.0.norm2.bias": (12,),
        "blocks.0.mlp.fc1.weight": (20, 12), "blocks.0.mlp.fc1.bias": (20,), "blocks.0.mlp.fc2.weight": (12, 20),
        "blocks.0.mlp.fc2.bias": (12,), "norm.weight": (12,), "norm.bias": (12,), "head.weight": (5, 12),
        "head.bias": (5,)}


def test_q_k_and_v_are_the_thirds_of_timms_qkv():
    tensors = to_checkpoint(generic(CONFIG).parameters, "timm")
    rows = np.arange(36, dtype=np.float32)
    tensors["blocks.1.attn.qkv.bias"] = rows
    parameters = ViT.from_checkpoint(tensors, num_attention_heads=3).parameters
    assert [parameters[f"blocks.1.{part}.bias"][0] for part in "qkv"] == [0, 12, 24]


def test_names_of_hugging_face():
    names = {checkpoint_name("huggingface", name) for name in generic(CONFIG).parameters}
    for name in ("vit.embeddings.cls_token", "vit.embeddings.position_embeddings",
                 "vit.embeddings.patch_embeddings.projection.weight", "vit.encoder.layer.1.layernorm_before.bias",
                 "vit.encoder.layer.0.attention.attention.query.weight", "vit.layernorm.weight", "classifier.bias",
                 "vit.encoder.layer.0.attention.output.dense.weight", "vit.encoder.layer.1.intermediate.dense.weight",
                 "vit.encoder.layer.1.output.dense.bias", "vit.encoder.layer.0.layernorm_after.weight"):
        assert name in names
    assert len(names) == 4 + 16 * 2 + 4


def test_logits_of_transformers(tmp_path):
    """A checkpoint that Hugging Face's library wrote, where it is installed."""
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    config = transformers.ViTConfig(hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20,
                                    image_size=12, patch_size=4, num_labels=5)
    torch.manual_seed(3)
    theirs = transformers.ViTForImageClassification(config).eval()
    theirs.save_pretrained(tmp_path)
    model = ViT.from_checkpoint(tmp_path / "model.safetensors", num_attention_heads=3)
    images = images_of(CONFIG, 2)
    with torch.no_grad():
        expected = theirs(torch.from_numpy(images)).logits.numpy()
    assert model.config.layer_norm_eps == 1e-12 and np.abs(model.forward(images) - expected).max() < 1e-5


def test_half_precision_is_widened_and_a_file_is_read(tmp_path):
    from safetensors.numpy import save_file

    tensors = to_checkpoint(generic(CONFIG).parameters, "timm")
    save_file({name: array.astype(np.float16) for name, array in tensors.items()}, tmp_path / "half.safetensors")
    model = ViT.from_checkpoint(tmp_path / "half.safetensors", num_attention_heads=3)
    assert np.array_equal(model.parameters["norm.weight"], tensors["norm.weight"].astype(np.float16).astype(np.float32))
    (tmp_path / "text").write_text("no model")
    with pytest.raises(ModelFileError, match="text: not a safetensors file"):
        ViT.from_checkpoint(tmp_path / "text", num_attention_heads=3)


def test_what_does_not_fit_is_named():
    whole = to_checkpoint(generic(CONFIG).parameters, "timm")

    def refused(match, **changes):
        tensors = {k: v for k, v in (whole | changes).items() if v is not None}
        with pytest.raises(ValueError, match=match):
            ViT.from_checkpoint(tensors, num_attention_heads=3)

    refused("neither timm's nor Hugging Face's names", cls_token=None)
    refused("tensor head_dist.weight does not belong to this model", **{"head_dist.weight": np.zeros(3, np.float32)})
    refused("tensor norm.bias is missing", **{"norm.bias": None})
    refused(r"tensor head.weight has shape \(5, 3\): expected \(5, 12\)",
            **{"head.weight": np.zeros((5, 3), np.float32)})
    refused("has type int64: expected float32", **{"head.bias": np.zeros(5, np.int64)})
    refused("not finite", **{"head.bias": np.full(5, np.nan, np.float32)})
    refused("there are 8 patches, which is no square: say image_size", pos_embed=np.zeros((1, 9, 12), np.float32))
    with pytest.raises(ValueError, match="layout = 'jax'"):
        to_checkpoint(generic(CONFIG).parameters, "jax")
