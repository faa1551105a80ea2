"""The catalogue of acts: all kinds, and their verbs."""

import shlex
from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType

from emulator.acts.access import CopyAcl, CopyUser, CreateAcl, CreateUser, DeleteAcl, DeleteUser, UpdateAcl, UpdateUser
from emulator.acts.act import Act
from emulator.acts.groups import DeleteSubGroup, SetMessageRequestMode, UpdateSubGroup
from emulator.acts.kv_config import DeleteKvConfig, UpdateKvConfig
from emulator.acts.messages import SendOneMessage
from emulator.acts.nameserver_lists import UpdateAddressServer, UpdateDomain
from emulator.acts.nodes import AddBroker, RemoveBroker, ShutdownNode, StartNode
from emulator.acts.offsets import (
    CloneGroupOffset,
    ResetOffset,
    ResetOffsetByTime,
    SkipAccumulatedMessage,
    UpdateConsumeOffset,
)
from emulator.acts.options import (
    AddWritePerm,
    UpdateBrokerConfig,
    UpdateControllerConfig,
    UpdateNamesrvConfig,
    WipeWritePerm,
)
from emulator.acts.statefulsets import RolloutRestart, RolloutUndo
from emulator.acts.static_topics import RemappingStaticTopic, UpdateStaticTopic
from emulator.acts.topics import DeleteTopic, UpdateTopic, UpdateTopicPerm
from faults.words import Words, WordsError
from nodes.fields import FieldError, shown
from nodes.secret import masked, mentions_secret

ACTS: Mapping[str, type[Act]] = MappingProxyType(
    {
        act.kind: act
        for act in (
            *(UpdateTopic, UpdateTopicPerm, DeleteTopic, UpdateSubGroup, DeleteSubGroup, SetMessageRequestMode),
            *(ResetOffsetByTime, SkipAccumulatedMessage, ResetOffset, UpdateConsumeOffset, CloneGroupOffset),
            *(UpdateBrokerConfig, UpdateNamesrvConfig, UpdateControllerConfig),
            *(WipeWritePerm, AddWritePerm, UpdateKvConfig, DeleteKvConfig, UpdateAddressServer, UpdateDomain),
            *(UpdateStaticTopic, RemappingStaticTopic, RolloutRestart, RolloutUndo),
            *(StartNode, ShutdownNode, AddBroker, RemoveBroker, SendOneMessage),
            *(CreateUser, UpdateUser, DeleteUser, CreateAcl, UpdateAcl, DeleteAcl, CopyUser, CopyAcl),
        )
    }
)
"""Mapping kind -> class."""
ACT_VERBS: Mapping[str, type[Act]] = MappingProxyType({act.wording.verb: act for act in ACTS.values()})
"""Mapping verb -> class, in the order of `help`."""


def act_of(line: str) -> Act:
    """Parse an act from a line: a verb and its words.

    Raises:
        WordsError: the line is not an act.
    """
    try:
        verb, *words = shlex.split(line) or [""]
    except ValueError as error:
        raise WordsError(f"{shown(masked(line.strip()))}: {str(error).lower()}") from None
    if verb not in ACT_VERBS:
        near = get_close_matches(shown(verb), ACT_VERBS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(ACT_VERBS)}"
        raise WordsError(f'"{shown(verb)}" is not an act of administrators; {hint}')
    return act_from_words(verb, words)


def act_from_words(verb: str, words: Words) -> Act:
    """Parse an act from a verb of `ACT_VERBS` and its words.

    Raises:
        WordsError: the words are not an act.
    """
    wording = ACT_VERBS[verb].wording
    if len(words) < wording.minimum:
        raise wording.mistake()
    if mentions_secret(" ".join(words)):
        raise WordsError(f"{verb}: an act sets no secret: it would be written to files and to the trace")
    try:
        return ACT_VERBS[verb].from_words(words)
    except FieldError as error:
        raise WordsError(str(error)) from None
