import { Button } from '../elements/button.js'
import type { BeatSwitches } from './kept-songs.js'
import type { Player } from '../player/player.js'
import { pitchWords, tempoWords } from '../words/practice-words.js'
import type { Beats } from './use-rhythm.js'

const tempoStep = 0.05
const [slowest, fastest] = [0.5, 1.5]
const octave = 12
/** Browsers have audio worklets only on https and localhost. */
const canStretch = 'AudioWorklet' in globalThis
const needsHttps = 'Changing tempo and pitch needs https.'

/** @returns the message for the person */
export function changeTempo(player: Player, steps: number): string {
  if (!canStretch) return needsHttps
  const tempo = Math.round((player.tempo + steps * tempoStep) * 100) / 100
  player.setTempo(Math.max(slowest, Math.min(fastest, tempo)))
  return `Tempo ${tempoWords(player.tempo)}`
}

/** @returns the message for the person */
export function changeSemitones(player: Player, steps: number): string {
  if (!canStretch) return needsHttps
  player.setSemitones(Math.max(-octave, Math.min(octave, player.semitones + steps)))
  return `Pitch ${pitchWords(player.semitones)}`
}

/** Wide enough for any of its texts, so that nothing moves when the beats are known. */
const findStyle = { minWidth: '9rem', textAlign: 'left' }

/** Controls for the tempo, and for the pitch in semitones. */
export function Practice({ player, beats, canFind }: { player: Player; beats: Beats; canFind: boolean }) {
  const { tempo, semitones } = player
  return (
    <div class="tools">
      <label class="slider">
        Tempo
        <input
          type="range"
          min={slowest * 100}
          max={fastest * 100}
          value={Math.round(tempo * 100)}
          disabled={!canStretch}
          aria-label="Tempo"
          aria-valuetext={tempoWords(tempo)}
          onInput={(event) => player.setTempo(Number(event.currentTarget.value) / 100)}
        />
        <output aria-hidden="true">{tempoWords(tempo)}</output>
      </label>
      <label class="slider">
        Pitch
        <input
          type="range"
          min={-octave}
          max={octave}
          value={semitones}
          disabled={!canStretch}
          aria-label="Pitch"
          aria-valuetext={`${pitchWords(semitones)} semitones`}
          onInput={(event) => player.setSemitones(Number(event.currentTarget.value))}
        />
        <output aria-hidden="true">{pitchWords(semitones)}</output>
      </label>
      {canStretch ? (
        <Button
          class="plain"
          disabled={tempo === 1 && semitones === 0}
          onClick={() => {
            player.setTempo(1)
            player.setSemitones(0)
          }}
        >
          As recorded
        </Button>
      ) : (
        <span class="quiet">{needsHttps}</span>
      )}
      <BeatButtons beats={beats} canFind={canFind} />
    </div>
  )
}

const switchTexts: Record<keyof BeatSwitches, string> = {
  isSnapping: 'Snap loops',
  isClicking: 'Click',
  isCountedIn: 'Count-in',
}

function findWords({ rhythm, share }: Beats): string {
  if (rhythm) return rhythm.beats.length > 0 ? 'Beats found' : 'No beats found'
  return share === undefined ? 'Find the beats' : `Stop (${Math.floor(share * 100)} %)`
}

function BeatButtons({ beats, canFind }: { beats: Beats; canFind: boolean }) {
  const { rhythm, switches, change, find } = beats
  return (
    <span class="flow">
      <div class="flow switches" role="group" aria-label="Beats">
        {(Object.keys(switchTexts) as (keyof BeatSwitches)[]).map((name) => (
          <Button
            key={name}
            disabled={!rhythm}
            aria-pressed={rhythm !== undefined && switches[name]}
            onClick={() => change({ [name]: !switches[name] })}
          >
            {switchTexts[name]}
          </Button>
        ))}
      </div>
      <Button class="plain" style={findStyle} disabled={!canFind || rhythm !== undefined} onClick={find}>
        {findWords(beats)}
      </Button>
    </span>
  )
}
