"""Generated accompaniment: random arrangements (bass, chords, melodies, drums; or an orchestra) as MIDI, rendered by fluidsynth with the sound fonts of Debian.

Patches that sound like a voice are left out; leads that resemble one (violin, flute, synthesizers) stay: they teach what is not a voice.
"""
import os
import struct
import subprocess
import tempfile

import numpy as np

from bands import RATE

FONTS = ('/usr/share/sounds/sf2/FluidR3_GM.sf2', '/usr/share/sounds/sf3/MuseScore_General_Lite.sf3')
PATCHES = dict(
    keys=[*range(0, 8), *range(16, 24)],
    guitar=[*range(24, 32)],
    bass=[*range(32, 40)],
    pad=[*range(44, 52), *range(88, 91), *range(92, 96)],
    lead=[22, *range(8, 14), *range(40, 44), *range(56, 85), *range(86, 88), *range(104, 108), 110],
    section=[*range(44, 52), 42, 60, 61],
    solo=[40, 40, 41, 42, 56, 57, 59, 60, 64, 65, 66, 68, 68, 69, 70, 71, 72, 73, 75, 77, 78, 79, 109, 110, 111],
)
# Share of the pieces that an orchestra plays: held notes that swell, with vibrato, and no drums, as a voice has them.
ORCHESTRAL = 0.35
KITS = (0, 8, 16, 24, 25, 32, 40)
SCALES = ((0, 2, 4, 5, 7, 9, 11), (0, 2, 3, 5, 7, 8, 10), (0, 2, 3, 5, 7, 9, 10), (0, 2, 4, 5, 7, 9, 10))
PROGRESSIONS = ((0, 4, 5, 3), (5, 3, 0, 4), (0, 5, 3, 4), (0, 3, 0, 4), (1, 4, 0, 0), (0, 6, 5, 4), (0, 3, 4, 3), (5, 4, 3, 4))
TICKS = 480
DRUM_CHANNEL = 9


def arrangement(seconds, seed):
    """16-bit stereo `[seconds * RATE, 2]`."""
    rng = np.random.default_rng(seed)
    piece = Piece(rng, seconds)
    with tempfile.TemporaryDirectory() as folder:
        score, audio = os.path.join(folder, 'score.mid'), os.path.join(folder, 'audio.raw')
        with open(score, 'wb') as file:
            file.write(piece.midi())
        font = FONTS[rng.integers(len(FONTS))]
        command = ['fluidsynth', '-ni', '-q', '-g', '0.25', '-r', str(RATE), '-O', 's16', '-T', 'raw', '-F', audio, font, score]
        subprocess.run(command, capture_output=True, check=True)
        pcm = np.fromfile(audio, np.int16)
    pcm = pcm[:len(pcm) // 2 * 2].reshape(-1, 2)[:int(seconds * RATE)]
    return np.pad(pcm, ((0, int(seconds * RATE) - len(pcm)), (0, 0)))


class Piece:
    def __init__(self, rng, seconds):
        self.rng, self.events, self.channel = rng, [], 0
        self.tempo = rng.uniform(65, 170)
        self.bars = max(1, int(seconds * self.tempo / 60) // 4)
        self.key, self.scale = int(rng.integers(-5, 7)), SCALES[rng.integers(len(SCALES))]
        self.progression = PROGRESSIONS[rng.integers(len(PROGRESSIONS))]
        if rng.random() < ORCHESTRAL:
            self.orchestra()
        else:
            self.band()

    def orchestra(self):
        rng = self.rng
        for _ in range(rng.integers(0, 3)):
            self.chords('section' if rng.random() < 0.8 else 'keys')
        for _ in range(rng.integers(1, 4)):
            self.held_melody('solo' if rng.random() < 0.7 else 'section', int(rng.integers(-1, 2)))

    def band(self):
        rng = self.rng
        if rng.random() < 0.85:
            self.bass()
        for kind in rng.choice(['keys', 'guitar', 'pad', 'keys', 'guitar'], rng.integers(1, 4), replace=False):
            self.chords(str(kind))
        for _ in range(rng.integers(0, 3)):
            self.melody()
        if rng.random() < 0.75:
            self.drums()

    def pitch(self, degree, octave):
        return 60 + self.key + 12 * (octave + degree // 7) + self.scale[degree % 7]

    def play(self, beat, beats, pitch, velocity, channel=None):
        channel = self.channel if channel is None else channel
        if 12 <= pitch < 115:
            beat = max(0, beat + self.rng.normal(0, 0.008))
            loudness = int(np.clip(velocity + self.rng.normal(0, 8), 15, 127))
            self.events += [(beat, bytes([0x90 | channel, pitch, loudness])), (beat + beats * 0.97, bytes([0x80 | channel, pitch, 0]))]

    def control(self, number, value, beat=0, channel=None):
        self.events.append((beat, bytes([0xB0 | (self.channel if channel is None else channel), number, int(value)])))

    def instrument(self, kind, pan=None):
        self.events.append((0, bytes([0xC0 | self.channel, int(self.rng.choice(PATCHES[kind]))])))
        self.control(10, self.rng.integers(10, 118) if pan is None else pan)
        self.control(7, self.rng.integers(60, 120))
        self.control(91, self.rng.integers(0, 90))

    def bass(self):
        rng, style = self.rng, self.rng.integers(3)
        self.instrument('bass', pan=64)
        for beat in range(self.bars * 4):
            root = self.progression[beat // 4 % 4]
            if style == 0:
                self.play(beat, 1, self.pitch(root, -2), 95)
            elif style == 1:
                self.play(beat, 0.5, self.pitch(root, -2), 95)
                self.play(beat + 0.5, 0.5, self.pitch(root + (4 if rng.random() < 0.3 else 0), -2), 85)
            elif beat % 2 == 0 or rng.random() < 0.3:
                self.play(beat, 1.5, self.pitch(root + int(rng.choice([0, 0, 2, 4])), -2), 95)
        self.channel += 1

    def chords(self, kind):
        rng, style, octave = self.rng, self.rng.integers(4), int(self.rng.integers(-1, 1))
        self.instrument(kind)
        rhythm = rng.random(8) < rng.uniform(0.3, 0.8)
        for bar in range(self.bars):
            root, beat = self.progression[bar % 4], bar * 4
            pitches = [self.pitch(root + step, octave) for step in (0, 2, 4, 6)[:4 if rng.random() < 0.3 else 3]]
            if style == 0:  # sustained
                for pitch in pitches:
                    self.play(beat, 4, pitch, 70)
            elif style == 1:  # strummed to a rhythm
                for eighth in np.flatnonzero(rhythm):
                    for string, pitch in enumerate(pitches):
                        self.play(beat + eighth / 2 + string * 0.01, 0.45, pitch, 75)
            elif style == 2:  # arpeggio
                for eighth in range(8):
                    self.play(beat + eighth / 2, 0.5, pitches[eighth % len(pitches)] + 12 * (eighth % 5 == 4), 72)
            else:
                for quarter in range(4):
                    for pitch in pitches:
                        self.play(beat + quarter, 0.9, pitch, 75)
        self.channel += 1

    def melody(self):
        rng, degree, beat = self.rng, int(self.rng.integers(0, 7)), 0.0
        self.instrument('lead')
        while beat < self.bars * 4:
            beats = float(rng.choice([0.25, 0.5, 0.5, 1, 1, 1.5, 2]))
            if rng.random() < 0.8:
                self.play(beat, beats, self.pitch(degree, 0), 85)
                for quarter in range(4 if rng.random() < 0.3 else 0):  # vibrato that comes and goes
                    self.control(1, rng.integers(0, 90), beat + beats * quarter / 4)
            degree = int(np.clip(degree + rng.integers(-3, 4), -4, 11))
            beat += beats
        self.channel += 1

    def held_melody(self, kind, octave):
        """A slow melody whose notes swell and fade, with vibrato, and often run into each other."""
        rng, degree, beat = self.rng, int(self.rng.integers(0, 7)), 0.0
        self.instrument(kind)
        while beat < self.bars * 4:
            beats = float(rng.choice([0.5, 1, 1, 2, 2, 3, 4, 6]))
            if rng.random() < 0.85:
                self.play(beat, beats * rng.choice([0.9, 1.05]), self.pitch(degree, octave), 90)
                loudness, vibrato = rng.uniform(50, 127, 3), rng.uniform(0, 100, 3)
                for moment in range(int(beats * 6)):  # from the first to the second to the third
                    place = moment / (beats * 3)
                    self.control(11, np.interp(place, range(3), loudness), beat + moment / 6)
                    self.control(1, np.interp(place, range(3), vibrato), beat + moment / 6)
            degree = int(np.clip(degree + rng.integers(-3, 4), -4, 11))
            beat += beats
        self.channel += 1

    def drums(self):
        rng = self.rng
        self.events.append((0, bytes([0xC0 | DRUM_CHANNEL, int(rng.choice(KITS))])))
        self.control(7, rng.integers(70, 120), channel=DRUM_CHANNEL)
        kick, snare = rng.random(8) < 0.3, rng.random(8) < 0.12
        kick[0] = snare[2] = snare[6] = True
        cymbal, parts = int(rng.choice([42, 42, 51, 46, 70, 69])), int(rng.choice([1, 1, 2]))

        def hit(beat, drum, velocity):
            self.play(beat, 0.2, drum, velocity, DRUM_CHANNEL)

        for bar in range(self.bars):
            for eighth in range(8):
                beat = bar * 4 + eighth / 2
                if kick[eighth]:
                    hit(beat, 36, 105)
                if snare[eighth]:
                    hit(beat, int(rng.choice([38, 40, 39], p=[0.6, 0.2, 0.2])), 100)
                for part in range(parts):
                    hit(beat + part / (2 * parts), cymbal, 75 - 15 * part)
            if rng.random() < 0.15:  # a fill
                hit(bar * 4, 49, 95)
                for sixth in range(6):
                    hit(bar * 4 + 3 + sixth / 6, int(rng.choice([45, 47, 48, 50])), 90)

    def midi(self):
        """A Standard MIDI File of one track."""
        body, last = b'\0\xff\x51\x03' + int(60e6 / self.tempo).to_bytes(3, 'big'), 0
        for beat, event in sorted(self.events, key=lambda entry: entry[0]):
            tick = round(beat * TICKS)
            body += variable_length(tick - last) + event
            last = tick
        body += b'\0\xff\x2f\0'
        return b'MThd' + struct.pack('>IHHH', 6, 0, 1, TICKS) + b'MTrk' + struct.pack('>I', len(body)) + body


def variable_length(number):
    out = [number & 127]
    while number > 127:
        number >>= 7
        out.append(number & 127 | 128)
    return bytes(reversed(out))
