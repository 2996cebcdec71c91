"""Any image-text-to-text architecture of transformers in a small size, from its configuration alone.

Sizes in the default configuration are shrunk by their names, the image processor is set to pictures of 32 pixels, and
a tokenizer is made that knows every token that the processor names. The number of tokens of a picture, where it
stands in the processor's settings, is found by asking the model once.
"""

import inspect
import json
import re

import tokenizers
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.image_processing_auto import IMAGE_PROCESSOR_MAPPING_NAMES
from transformers.models.auto.processing_auto import PROCESSOR_MAPPING_NAMES
from transformers.utils import is_torchvision_available

from examples import build_tiny_model as tiny
from lmms_eval.models.hf.inputs import media_marks
from lmms_eval.models.hf.load import _allow_missing
from tests.models.architectures.exceptions import CONFIG, IMAGES, MORE_IDS, PROCESSORS, TOKENS, UNNAMED, WORDS
from tests.models.hf.support import picture

PATCH, IMAGE = 8, 32
MOST_PARAMETERS = 8_000_000
SIZES = {
    32: ("hidden_size", "d_model", "embed_dim", "n_embd", "out_hidden_size", "text_hidden_size", "mm_hidden_size",
         "projection_dim", "encoder_hidden_size", "vision_hidden_size", "hidden_dim", "width", "output_dim",
         "image_size", "crop_size", "kv_lora_rank", "q_lora_rank", "vision_output_dim", "projector_input_dim",
         "projector_output_dim", "hidden_size_per_layer_input"),
    64: ("intermediate_size", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "mlp_dim", "d_ff",
         "moe_intermediate_size", "shared_expert_intermediate_size", "projector_hidden_size",
         "projector_intermediate_size", "intermediate_size_mlp", "projection_intermediate_size"),
    2: ("num_hidden_layers", "depth", "num_layers", "encoder_layers", "decoder_layers", "n_layers", "n_layer",
        "num_key_value_heads", "num_experts_per_tok", "moe_topk", "num_decoder_layers", "n_shared_experts",
        "resampler_depth", "num_global_layers"),
    4: ("num_attention_heads", "num_heads", "n_head", "encoder_attention_heads", "decoder_attention_heads",
        "attention_heads", "linear_num_heads", "index_n_heads", "num_experts", "num_local_experts",
        "n_routed_experts", "moe_num_experts", "resampler_n_heads"),
    8: ("head_dim", "attention_head_dim", "global_head_dim", "patch_size", "qk_nope_head_dim", "qk_rope_head_dim",
        "qk_head_dim", "v_head_dim", "linear_head_dim", "index_head_dim"),
    4096: ("max_position_embeddings",),
}  # fmt: skip
BY_NAME = {name: size for size, names in SIZES.items() for name in names}
TOKEN = re.compile(r"""["'](<[^<>"'\s{}]{1,40}>|\[[A-Z_]{3,20}\])["']""")
OWN = "(?!pad|bos|eos|unk|cls|sep|mask|add_)"
NAMED = re.compile(rf"""tokenizer\.({OWN}\w+_token)\b|tokenizer, ["']({OWN}\w+_token)["']""")
MISMATCH = re.compile(r"tokens?:? (\d+),? (?:and )?features:? \D{0,20}(\d+)", re.IGNORECASE)
COUNTS = ("image_seq_length", "image_seq_len", "num_image_tokens", "num_query_tokens")


class CannotBuildError(Exception):
    """The architecture cannot be made small from its configuration."""


def small_config(model_type, ids, vocabulary, changes):
    """The default configuration of an architecture with small sizes and this tokenizer's ids."""
    plain = CONFIG_MAPPING[model_type]().to_dict()
    shrunk = _shrunk(plain, ids, vocabulary)
    _merge(shrunk, CONFIG.get(model_type, {}))
    _merge(shrunk, changes)
    shrunk.update({name: ids[name] for name in MORE_IDS.get(model_type, ())})
    return CONFIG_MAPPING[model_type].from_dict(shrunk)


def _merge(target, changes):
    for name, value in changes.items():
        if isinstance(value, dict) and isinstance(target.get(name), dict):
            _merge(target[name], value)
        else:
            target[name] = value


def _shrunk(values, ids, vocabulary):
    layers = values.get("num_hidden_layers")
    made = {
        name: _small_layers(name, value) if _is_by_layer(value, layers) else _small(name, value, ids, vocabulary)
        for name, value in values.items()
    }
    if values.get("num_key_value_heads") == values.get("num_attention_heads") is not None:
        made["num_key_value_heads"] = made["num_attention_heads"]
    if "num_attention_heads" in made and "head_dim" not in made and "hidden_size" in made:
        made["hidden_size"] = 32
    return made


def _is_by_layer(value, layers):
    return isinstance(value, list) and layers is not None and len(value) == layers > 2


def _small_layers(name, values):
    """Of two layers; the second attends to everything where one does."""
    if all(isinstance(value, str) for value in values):
        return [values[0], next((value for value in values if value.startswith("full")), values[-1])]
    return [min(BY_NAME.get(name, value), value) for value in values[:2]]


def _small(name, value, ids, vocabulary):
    if name == "per_layer_config":
        return {}
    if isinstance(value, dict):
        return _small_rope(value) if name.startswith("rope_") else _shrunk(value, ids, vocabulary)
    if name in ids and (value is None or isinstance(value, int)):
        return ids[name]
    if name == "num_kv_shared_layers":
        return 0
    if name in ("vocab_size", "vocab_size_per_layer_input") and value is not None:
        return vocabulary
    if isinstance(value, list):
        return _small_list(name, value)
    if name in BY_NAME and isinstance(value, int) and not isinstance(value, bool):
        return min(BY_NAME[name], value) if BY_NAME[name] < 32 else BY_NAME[name]
    if name in ("vision_feature_layer",) and isinstance(value, int):
        return -1
    if name in ("dropout", "attention_dropout", "hidden_dropout", "drop_path_rate"):
        return 0.0
    return value


def _small_rope(value):
    made = dict(value)
    if "mrope_section" in made:
        made["mrope_section"] = [2, 1, 1]
    return {name: _small_rope(item) if isinstance(item, dict) else item for name, item in made.items()}


def _small_list(name, value):
    if name.endswith("layer_types") and value:
        return _small_layers(name, value)
    if name in ("image_size", "patch_size", "crop_size"):
        return [BY_NAME[name]] * len(value)
    if name == "mrope_section":
        return [2, 1, 1]
    if name.endswith(("indexes", "indices", "_layers")) and value and all(isinstance(item, int) for item in value):
        return [1 if name == "fullatt_block_indexes" else 0]
    if name == "image_grid_pinpoints":
        return [[IMAGE, IMAGE], [IMAGE, 2 * IMAGE], [2 * IMAGE, IMAGE]]
    return value


def processor_class(model_type):
    name = PROCESSORS.get(model_type) or PROCESSOR_MAPPING_NAMES.get(model_type)
    if not name:
        raise CannotBuildError("transformers has no processor for it")
    return getattr(transformers, name)


def tokenizer_for(model_type, family):
    """A tokenizer that knows the tokens that a processor's source names."""
    source = inspect.getsource(inspect.getmodule(family))
    named = {one or other for one, other in NAMED.findall(source)} - set(UNNAMED.get(model_type, ()))
    signature = inspect.signature(family.__init__).parameters.values()
    texts = set(TOKEN.findall(source)) | {
        item.default for item in signature if isinstance(item.default, str) and TOKEN.fullmatch(f'"{item.default}"')
    }
    texts |= {"<|vision_start|>", "<|vision_end|>", *TOKENS.get(model_type, {}).get("more", ())}
    by_name = {name: KNOWN.get(name, f"<|{name}|>") for name in sorted(named)}
    special = tuple(dict.fromkeys([*sorted(texts - {tiny.PAD, tiny.BOS, tiny.EOS, tiny.UNK}), *by_name.values()]))
    made = tiny._build_tokenizer(tiny._Architecture(special, "", None, {}, {}))
    made._set_model_specific_special_tokens(by_name)
    return after_a_blank(made, WORDS[model_type]) if model_type in WORDS else made


def after_a_blank(tokenizer, words):
    """The tokenizer with a blank before every text, as sentencepiece has it; ``words`` are whole, not added tokens."""
    plan = json.loads(tokenizer.backend_tokenizer.to_str())
    plan["added_tokens"] = [token for token in plan["added_tokens"] if token["content"] not in words]
    plan["model"]["ignore_merges"] = True
    plan["normalizer"] = {"type": "Prepend", "prepend": " "}
    pattern = {"Regex": "|".join(re.escape(word) for word in words)}
    split = {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}
    letters = {**plan["pre_tokenizer"], "use_regex": False}
    plan["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, letters]}
    names = {name: token for name, token in tokenizer.special_tokens_map.items() if isinstance(token, str)}
    core = tokenizers.Tokenizer.from_str(json.dumps(plan))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=core, **names)


KNOWN = {"image_token": "<image>", "video_token": "<video>", "audio_token": "<audio>"}


def token_ids(model_type, processor, tokenizer):
    """Ids by the names that configurations have for them."""
    ids = {name: getattr(tokenizer, name) for name in ("pad_token_id", "bos_token_id", "eos_token_id")}
    ids["decoder_start_token_id"] = tokenizer.bos_token_id
    holders = {**{name: token for name, token in tokenizer.special_tokens_map.items() if isinstance(token, str)}}
    written = hasattr(processor, "full_image_sequence")  # then its image token is where a whole sequence is written
    holders |= {
        name: value
        for name, value in vars(processor).items()
        if name.endswith("_token") and not (written and name == "image_token")
    }
    for place in ("start", "end"):
        holders[f"vision_{place}_token"] = f"<|vision_{place}|>"
        holders.setdefault(f"image_{place}_token", f"<|vision_{place}|>")
    holders |= TOKENS.get(model_type, {}).get("named", {})
    for name, token in holders.items():
        if isinstance(token, str) and token in tokenizer.get_vocab():
            for ending in ("_id", "_index"):
                ids.setdefault(name + ending, tokenizer.convert_tokens_to_ids(token))
    return ids


def small_size(value):
    """Of pictures, in the keys that an image processor has for it."""
    if isinstance(value, int):
        return IMAGE
    small = {}
    for name, number in dict(value).items():
        if number is None:
            continue
        area = number > 4096 and name in ("shortest_edge", "longest_edge")
        edge = 2 * IMAGE if name.startswith(("longest", "max")) else IMAGE
        small[name] = edge * edge if area else edge
    return small


def image_part(cls, **more):
    settings = {}
    for name in ("size", "crop_size", "max_image_size", "min_pixels", "max_pixels"):
        value = getattr(cls, name, None)
        if value is not None and not callable(value):
            edge = IMAGE if name == "min_pixels" else 2 * IMAGE
            settings[name] = edge * edge if name.endswith("pixels") else small_size(value)
    if isinstance(getattr(cls, "patch_size", None), int):
        settings["patch_size"] = PATCH
    if getattr(cls, "image_grid_pinpoints", None):
        settings["image_grid_pinpoints"] = [[IMAGE, IMAGE], [IMAGE, 2 * IMAGE], [2 * IMAGE, IMAGE]]
    return cls(**{**settings, **more})


def build(model_type, folder, **changes):
    """Write model, processor and tokenizer into ``folder``; ``changes`` replace values of the configuration.

    Raises:
        CannotBuildError: with the reason.
    """
    family = processor_class(model_type)
    tokenizer = tokenizer_for(model_type, family)
    settings = {}
    for _ in range(3):
        processor = processor_of(model_type, family, tokenizer, settings)
        ids = token_ids(model_type, processor, tokenizer)
        config = small_config(model_type, ids, len(tokenizer), changes)
        check_size(config)
        model = randomised(config, tokenizer)
        found = picture_tokens(processor, model, tokenizer)
        if found is None:
            break
        accepted = inspect.signature(family.__init__).parameters
        settings = {name: found for name in COUNTS if name in accepted}
        if not settings:
            break
    marks = media_marks(processor, tokenizer, config)
    mark = TOKENS.get(model_type, {}).get("mark") or marks.get("image", "")
    sound = f"{{% elif part['type'] == 'audio' %}}{marks.get('audio', '')}{{% elif part['type'] == 'text' %}}"
    template = tiny._TEMPLATE.replace("{% elif part['type'] == 'text' %}", sound)
    template = template.replace("IMAGE_PLACEHOLDER", mark).replace("END_OF_TURN", tiny.EOS)
    processor.chat_template = tokenizer.chat_template = template
    model.save_pretrained(folder)
    save_processor(processor, family, folder)
    return folder


def save_processor(processor, family, folder):
    parts = [getattr(processor, name) for name in family.get_attributes()]
    plain = {"processor_class": family.__name__}
    if None not in parts:
        processor.save_pretrained(folder)
    else:  # one without its video part cannot save itself
        processor.tokenizer.save_pretrained(folder)
        media = [part.to_dict() for part in parts if part not in (None, processor.tokenizer)]
        merged = {name: value for part in media for name, value in part.items()} | plain
        (folder / "preprocessor_config.json").write_text(json.dumps(merged, default=dict))
        simple = {name: value for name, value in vars(processor).items() if isinstance(value, str | int)}
        plain.update({name: simple[name] for name in inspect.signature(family.__init__).parameters if name in simple})
        (folder / "processor_config.json").write_text(json.dumps(plain))
    if not (folder / "processor_config.json").exists():
        (folder / "processor_config.json").write_text(json.dumps(plain))


def randomised(config, tokenizer):
    """Weights that make the likeliest token stand out."""
    import torch

    torch.manual_seed(0)
    model = transformers.AutoModelForImageTextToText.from_config(config).to(torch.float32).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0.0, 1.5 / parameter[0].numel() ** 0.5)
            elif parameter.numel() == 1:  # a gate; those of Mllama start closed to its pictures
                parameter.fill_(1.0)
    for name in ("eos_token_id", "pad_token_id", "bos_token_id"):
        setattr(model.generation_config, name, getattr(tokenizer, name))
    return model


def check_size(config):
    import torch

    with torch.device("meta"):
        parameters = dict(transformers.AutoModelForImageTextToText.from_config(config).named_parameters())
    if sum(parameter.numel() for parameter in parameters.values()) > MOST_PARAMETERS:
        largest = sorted(parameters, key=lambda name: -parameters[name].numel())[:3]
        shapes = ", ".join(f"{name} {tuple(parameters[name].shape)}" for name in largest)
        raise CannotBuildError(f"sizes of the configuration stay large: {shapes}")


def processor_of(model_type, family, tokenizer, settings):
    parts = []
    for name in family.get_attributes():
        parts.append(part_of(model_type, name, tokenizer))
    accepted = inspect.signature(family.__init__).parameters
    own = IMAGES.get(model_type, {}).get("processor", {})
    more = {"patch_size": PATCH, "vision_feature_select_strategy": "full", **own, **settings}
    more = {name: value for name, value in more.items() if name in accepted}
    return (_allow_missing(family) if None in parts else family)(*parts, **more)


def part_of(model_type, name, tokenizer):
    if name.endswith("tokenizer"):
        return tokenizer
    if name == "image_processor":
        names = IMAGE_PROCESSOR_MAPPING_NAMES.get(model_type) or IMAGES.get(model_type, {}).get("names")
        if not names:
            raise CannotBuildError("transformers has no image processor for it")
        cls = getattr(transformers, names.get("torchvision") or names["pil"])
        return image_part(cls, **IMAGES.get(model_type, {}).get("image", {}))
    if name == "video_processor":
        if not is_torchvision_available():
            return None  # as hf loads it then
        from transformers.models.auto.video_processing_auto import VIDEO_PROCESSOR_MAPPING_NAMES

        found = VIDEO_PROCESSOR_MAPPING_NAMES.get(model_type) or IMAGES.get(model_type, {}).get("video")
        if not found:
            raise CannotBuildError("transformers has no video processor for it")
        return image_part(getattr(transformers, found if isinstance(found, str) else next(iter(found.values()))))
    if name in ("feature_extractor", "audio_processor"):
        from transformers.models.auto.feature_extraction_auto import FEATURE_EXTRACTOR_MAPPING_NAMES

        found = FEATURE_EXTRACTOR_MAPPING_NAMES.get(model_type) or IMAGES.get(model_type, {}).get("sound")
        if not found:
            raise CannotBuildError("transformers has no feature extractor for it")
        settings = IMAGES.get(model_type, {}).get("sound_settings", {})
        return getattr(transformers, found if isinstance(found, str) else next(iter(found.values())))(**settings)
    raise CannotBuildError(f"its processor needs a {name}")


def picture_tokens(processor, model, tokenizer):
    """Tokens that one picture needs where the processor wrote another number; else ``None``."""
    import torch

    mark = media_marks(processor, tokenizer, model.config).get("image", "")
    try:
        inputs = processor(text=[mark + " a"], images=[[picture(32, 32)]], return_tensors="pt")
        with torch.inference_mode():
            model(**inputs)
    except Exception as error:  # noqa: BLE001 - whatever it is, asking through hf will say so again
        found = MISMATCH.search(str(error))
        if found is None or not int(found.group(1)):
            return None
        features = int(found.group(2))
        return features // 32 if features % 32 == 0 and features > 256 else features
    return None
