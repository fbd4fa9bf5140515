import { useEffect, useRef, useState } from 'preact/hooks'
import { Button } from '../elements/button.js'
import { type ExportFormat, exportFormats } from './export-formats.js'
import { saveLink } from '../jobs/job-requests.js'
import { useMessages } from '../elements/messages.js'
import type { TrackMix } from './mix-settings.js'
import { clickName, type Loop, type Player, type PlayerTrack } from '../player/player.js'
import { explain } from '../words/words.js'

interface ExportButtonProps {
  player: Player
  tracks: readonly PlayerTrack[]
  song: string
  mix: Record<string, TrackMix>
  /** Part to export: the whole track or the loop. The export waits until it is made. */
  part: Loop
}

const mp3Rates = [32_000, 44_100, 48_000]
const keptMs = 60_000

/** Saves the mix as a file; while the file is made, the same button cancels it. */
export function ExportButton({ player, tracks, song, mix, part }: ExportButtonProps) {
  const [format, setFormat] = useState<ExportFormat>('16')
  const [share, setShare] = useState<number>()
  const stop = useRef(new AbortController())
  const { show } = useMessages()
  useEffect(() => () => stop.current.abort(), [])
  const isSilent = Object.entries(mix).every(([name, { gain }]) => gain === 0 || name === clickName)
  const hasMp3 = mp3Rates.includes(tracks[0]?.source.sampleRate ?? 0)

  const run = async () => {
    stop.current = new AbortController()
    const { signal } = stop.current
    setShare(0)
    try {
      const { exportMix } = await import('./export-mix.js')
      const { tempo, semitones } = player
      const heard = { mix, tempo, semitones, ...part, signal, onProgress: setShare }
      const file = await exportMix(tracks, { format, ...heard })
      const url = URL.createObjectURL(file)
      saveLink(url, `${song} - mix.${exportFormats[format].extension}`)
      setTimeout(() => URL.revokeObjectURL(url), keptMs)
      show({ text: 'The mix is saved.' })
    } catch (error) {
      if (!signal.aborted) show({ text: explain(error).text })
    } finally {
      setShare(undefined)
    }
  }

  return (
    <span class="flow">
      <select
        aria-label="Format of the mix"
        value={format}
        disabled={share !== undefined}
        onChange={(event) => setFormat(event.currentTarget.value as ExportFormat)}
      >
        {Object.entries(exportFormats).map(
          ([one, { label }]) =>
            (one !== 'mp3' || hasMp3) && (
              <option key={one} value={one}>
                {label}
              </option>
            ),
        )}
      </select>
      <Button
        disabled={(isSilent || part.from >= part.to || part.to > player.made) && share === undefined}
        onClick={() => (share === undefined ? void run() : stop.current.abort())}
      >
        {share === undefined ? 'Export this mix' : `Stop the export (${Math.floor(share * 100)} %)`}
      </Button>
    </span>
  )
}
