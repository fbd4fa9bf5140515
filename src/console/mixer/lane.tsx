import { Button } from '../elements/button.js'
import type { Loop } from '../player/player.js'
import type { SongRhythm } from '../player/rhythm.js'
import { Spectrogram } from '../pictures/spectrogram.js'
import { stemColour } from '../words/stem-names.js'
import type { Stem } from '../sources/stems.js'
import { usePictureGestures } from '../pictures/picture-gestures.js'
import type { ViewWindow } from '../pictures/view-window.js'
import { Waveform } from '../pictures/waveform.js'
import { decibelWords, panWords } from '../words/practice-words.js'
import { outputWords } from '../words/words.js'

export type LaneView = 'waveform' | 'spectrogram'

export interface LaneSettings {
  isMuted: boolean
  isSolo: boolean
  /** 0..2: 1 leaves the stem as it is, 2 is 12 dB more. */
  volume: number
  /** -1 (left) to 1 (right). */
  pan: number
}

interface LaneProps {
  stem: Stem
  rhythm: SongRhythm | undefined
  /** Number of the lane, from 1: the digit key that mutes it, up to 9. */
  digit: number
  picture: LaneView
  view: ViewWindow
  duration: number
  settings: LaneSettings
  /** False when it is muted or another lane plays solo. */
  isHeard: boolean
  onChange(changes: Partial<LaneSettings>): void
  onSeek(seconds: number): void
  onLoop(loop: Loop): void
}

/** One stem: its picture, in which a click seeks and a drag makes a loop, and its controls. */
export function Lane(props: LaneProps) {
  const { stem, rhythm, digit, picture, view, duration, settings, isHeard, onChange, onSeek, onLoop } = props
  const title = outputWords(stem.name)
  const gestures = usePictureGestures(view, onSeek, onLoop)
  return (
    <section
      class={isHeard ? 'lane' : 'lane silent'}
      style={{ '--own': `var(--${stemColour(stem.name)})` }}
      aria-label={title}
    >
      <div class="controls">
        <h2>
          {title} {digit < 10 && <kbd aria-hidden="true">{digit}</kbd>}
        </h2>
        <div class="flow switches">
          <Button
            aria-pressed={settings.isMuted}
            aria-label={`Mute ${title}`}
            onClick={() => onChange({ isMuted: !settings.isMuted })}
          >
            Mute
          </Button>
          <Button
            aria-pressed={settings.isSolo}
            aria-label={`Solo ${title}`}
            onClick={() => onChange({ isSolo: !settings.isSolo })}
          >
            Solo
          </Button>
        </div>
        <Level name={stem.name} title={title} settings={settings} onChange={onChange} />
      </div>
      <div class="picture" {...gestures}>
        {picture === 'waveform' ? (
          <Waveform stem={stem} rhythm={rhythm} title={title} view={view} duration={duration} />
        ) : (
          <Spectrogram stem={stem} title={title} view={view} duration={duration} />
        )}
        <span class="loop-area" />
        <span class="playhead" />
      </div>
    </section>
  )
}

interface LevelProps extends Pick<LaneProps, 'settings' | 'onChange'> {
  name: string
  title: string
}

/** Volume and pan of a stem. */
function Level({ name, title, settings: { volume, pan }, onChange }: LevelProps) {
  return (
    <div class="volume">
      <input
        type="range"
        min={0}
        max={200}
        value={Math.round(volume * 100)}
        aria-label={`Volume of ${title}`}
        aria-valuetext={decibelWords(volume)}
        title={decibelWords(volume)}
        onInput={(event) => onChange({ volume: Number(event.currentTarget.value) / 100 })}
      />
      <span class="meter" data-meter={name} aria-hidden="true" />
      <span class="pan">
        <span aria-hidden="true">L</span>
        <input
          type="range"
          min={-100}
          max={100}
          value={Math.round(pan * 100)}
          aria-label={`Pan of ${title}`}
          aria-valuetext={panWords(pan)}
          title={panWords(pan)}
          onInput={(event) => onChange({ pan: Number(event.currentTarget.value) / 100 })}
        />
        <span aria-hidden="true">R</span>
      </span>
    </div>
  )
}
