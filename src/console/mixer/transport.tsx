import { Segments } from '../elements/filter-controls.js'
import type { LaneView } from './lane.js'
import { stepSeconds } from './mixer-keys.js'
import type { MixSettings } from './mix-settings.js'
import { PlayButton } from '../elements/play-button.js'
import type { Player } from '../player/player.js'
import { clock } from '../words/words.js'
import { ZoomButtons } from '../elements/zoom-buttons.js'

interface TransportProps {
  player: Player
  picture: LaneView
  onPicture(picture: LaneView): void
  mix: MixSettings
  /** Whether the stems are the whole song. */
  hasOriginal: boolean
  onToggle(): void
  onZoom(factor: number): void
}

const sounds = [
  [false, 'Mix'],
  [true, 'Original'],
] as const
const pictures = [
  ['waveform', 'Waveform'],
  ['spectrogram', 'Spectrogram'],
] as const

/** Playback, position, and controls for all lanes. */
export function Transport(props: TransportProps) {
  const { player, picture, mix, hasOriginal } = props
  return (
    <>
      <div class="transport">
        <PlayButton isPlaying={player.isPlaying} isWaiting={player.isWaiting} onToggle={props.onToggle} />
        <span class="figure">
          {/* As wide as it can become, so that nothing moves when it gets another digit. */}
          <span data-time style={{ display: 'inline-block', minWidth: `${clock(player.duration).length}ch` }}>
            {clock(player.position)}
          </span>
          <span class="quiet"> / {clock(player.duration)}</span>
        </span>
        <input
          class="seek"
          type="range"
          min={0}
          max={player.duration}
          step="any"
          aria-label="Position"
          onInput={(event) => player.seek(Number(event.currentTarget.value))}
          onKeyDown={(event) => {
            // With a step of "any", the arrow keys differ between browsers.
            const seconds = {
              ArrowLeft: -stepSeconds,
              ArrowDown: -stepSeconds,
              ArrowRight: stepSeconds,
              ArrowUp: stepSeconds,
            }[event.key]
            if (seconds === undefined) return
            event.preventDefault()
            player.seek(player.position + seconds)
          }}
        />
      </div>
      <div class="tools">
        {hasOriginal && (
          <Segments legend="What is heard" choices={sounds} chosen={mix.isOriginal} onChange={mix.setOriginal} />
        )}
        <Segments legend="Picture" choices={pictures} chosen={picture} onChange={props.onPicture} />
        <ZoomButtons onZoom={props.onZoom} />
        <label class="slider">
          Volume
          <input
            type="range"
            min={0}
            max={100}
            value={Math.round(mix.masterVolume * 100)}
            aria-label="Master volume"
            onInput={(event) => mix.setMasterVolume(Number(event.currentTarget.value) / 100)}
          />
        </label>
      </div>
    </>
  )
}
