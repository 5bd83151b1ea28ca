"""What a draft network would have guessed in texts that its target has written, without decoding again.

Knows no prompts as text and no files: token ids, the target's hidden states, and a draft network.
"""

from outrider.replay.measure import replay
from outrider.replay.recording import RecordedText, Recording, record
from outrider.replay.result import Replay, ReplayedText

__all__ = ["RecordedText", "Recording", "Replay", "ReplayedText", "record", "replay"]
