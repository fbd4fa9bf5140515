import { Spectrogram } from './spectrogram.js'
import type { Stem } from './stems.js'
import { Waveform } from './waveform.js'
import { outputWords } from './words.js'

export type LaneView = 'waveform' | 'spectrogram'

export interface LaneSettings {
  isMuted: boolean
  isSolo: boolean
  /** 0..1 */
  volume: number
}

interface LaneProps {
  stem: Stem
  view: LaneView
  settings: LaneSettings
  /** False when it is muted or another lane plays solo. */
  isHeard: boolean
  onChange(changes: Partial<LaneSettings>): void
  /** @param share of the whole track, 0..1 */
  onSeek(share: number): void
}

/** One stem: its picture, which a click seeks in, and its controls. */
export function Lane({ stem, view, settings, isHeard, onChange, onSeek }: LaneProps) {
  const title = outputWords(stem.name)
  const seek = (event: PointerEvent & { currentTarget: HTMLElement }) => {
    const { left, width } = event.currentTarget.getBoundingClientRect()
    onSeek(Math.max(0, Math.min(1, (event.clientX - left) / width)))
  }
  return (
    <section class={`lane ${stem.name === 'vocals' ? 'voice' : 'music'}${isHeard ? '' : ' silent'}`} aria-label={title}>
      <div class="controls">
        <h2>{title}</h2>
        <div class="switches">
          <button
            type="button"
            aria-pressed={settings.isMuted}
            aria-label={`Mute ${title}`}
            onClick={() => onChange({ isMuted: !settings.isMuted })}
          >
            Mute
          </button>
          <button
            type="button"
            aria-pressed={settings.isSolo}
            aria-label={`Solo ${title}`}
            onClick={() => onChange({ isSolo: !settings.isSolo })}
          >
            Solo
          </button>
        </div>
        <input
          type="range"
          min={0}
          max={100}
          value={Math.round(settings.volume * 100)}
          aria-label={`Volume of ${title}`}
          onInput={(event) => onChange({ volume: Number(event.currentTarget.value) / 100 })}
        />
      </div>
      <div
        class="picture"
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId)
          seek(event)
        }}
        onPointerMove={(event) => event.currentTarget.hasPointerCapture(event.pointerId) && seek(event)}
      >
        {view === 'waveform' ? <Waveform stem={stem} title={title} /> : <Spectrogram stem={stem} title={title} />}
        <span class="playhead" />
      </div>
    </section>
  )
}
