"""Rules on models and clients, whatever the engine: their facts are stated, or come from a run."""

from __future__ import annotations

from dsv4doctor.audit.logic import above, all_of, any_of, below, contains, lacks, off, on, one_of
from dsv4doctor.audit.rule import Grade, Rule, Support
from dsv4doctor.audit.rules.families import FLASH_0731, V4_ANY

_GITHUB = "https://github.com"

RULES = (
    Rule(
        id="MODEL-01",
        symptom="V4-Flash-0731 loops on long analysis at low temperature, or in agent histories "
        "above 200 K tokens, on any engine",
        grade=Grade.MEDIUM,
        support=Support.REPORTED,
        when=all_of(
            FLASH_0731,
            any_of(below("client.temperature", 0.21), above("client.context_tokens", 200_000)),
        ),
        links=(
            f"{_GITHUB}/antirez/ds4/issues/1045",
            f"{_GITHUB}/ggml-org/llama.cpp/issues/26694",
            f"{_GITHUB}/jundot/omlx/issues/3758",
        ),
        remedy="temperature 0.8; do not blame the cache before a control on another serving",
    ),
    Rule(
        id="MODEL-02",
        symptom="with more than about 40 tools and automatic choice 5-20 % of calls come as prose",
        grade=Grade.MEDIUM,
        support=Support.REPORTED,
        when=all_of(V4_ANY, above("client.tools", 40), one_of("client.tool_choice", "auto")),
        links=(
            f"{_GITHUB}/deepseek-ai/DeepSeek-V3/issues/1244",
            f"{_GITHUB}/deepseek-ai/DeepSeek-V3/issues/1554",
        ),
        remedy="fewer tools a request, re-ask; count it as the model's baseline",
    ),
    Rule(
        id="FE-01",
        symptom="Dynamo's deepseek_v4 reasoning parser keeps the tool block inside reasoning",
        grade=Grade.HIGH,
        support=Support.CONFIRMED,
        when=all_of(
            contains("frontend", "dynamo"),
            contains("reasoning_parser", "deepseek_v4", "deepseek-v4"),
            lacks(10646, 10203),
        ),
        links=(
            f"{_GITHUB}/ai-dynamo/dynamo/pull/10646",
            f"{_GITHUB}/ai-dynamo/dynamo/pull/10203",
        ),
        remedy="upgrade Dynamo, or parse on the worker",
    ),
    Rule(
        id="FE-02",
        symptom="the client takes an end of body without finish_reason for a whole answer: half "
        "arguments are stored",
        grade=Grade.HIGH,
        support=Support.CONFIRMED,
        when=on("client.accepts_no_finish_reason"),
        links=(
            f"{_GITHUB}/esengine/DeepSeek-Reasonix/pull/3957",
            f"{_GITHUB}/tetsuo-ai/agenc-core/pull/2492",
        ),
        remedy="treat it as cut and drop the partial call",
    ),
    Rule(
        id="FE-03",
        symptom="without max_tokens arguments are cut and content comes null at high effort",
        grade=Grade.MEDIUM,
        support=Support.REPORTED,
        when=off("client.sends_max_tokens"),
        links=(
            f"{_GITHUB}/NousResearch/hermes-agent/issues/93156",
            f"{_GITHUB}/ai-dynamo/dynamo/issues/3876",
        ),
        remedy="send max_tokens on tool turns",
    ),
    Rule(
        id="FE-04",
        symptom="histories without reasoning_content on tool turns give HTTP 400 or drift",
        grade=Grade.MEDIUM,
        support=Support.CONFIRMED,
        when=off("client.sends_reasoning_content"),
        links=(
            f"{_GITHUB}/deepseek-ai/DeepSeek-V3/issues/1376",
            f"{_GITHUB}/Gitlawb/openclaude/issues/878",
        ),
        remedy="send reasoning_content back unchanged, also when it is empty",
    ),
    Rule(
        id="FE-05",
        symptom="a gateway that renumbers or omits `index` merges or loses parallel calls",
        grade=Grade.MEDIUM,
        support=Support.CONFIRMED,
        when=on("client.gateway_changes_index"),
        links=(
            f"{_GITHUB}/ai-dynamo/dynamo/pull/4723",
            f"{_GITHUB}/huggingface/smolagents/pull/1958",
        ),
        remedy="upgrade the gateway; merge by id and index together",
    ),
    Rule(
        id="SG-25",
        symptom="byte-equal greedy output is demanded of a backend that is not batch-invariant: "
        "false alarms",
        grade=Grade.LOW,
        support=Support.CONFIRMED,
        when=all_of(V4_ANY, on("client.compares_bytes")),
        links=(f"{_GITHUB}/sgl-project/sglang/pull/38926",),
        remedy="compare by KL or task score over repeats",
    ),
)
