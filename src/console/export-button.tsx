import { useEffect, useRef, useState } from 'preact/hooks'
import { exportMix } from './export-mix.js'
import { saveLink } from './job-commands.js'
import { useMessages } from './messages.js'
import type { Loop } from './player.js'
import type { Stem } from './stems.js'
import { explain } from './words.js'

interface ExportButtonProps {
  stems: readonly Stem[]
  song: string
  gains: Record<string, number>
  /** What is exported: the whole track or the loop. */
  part: Loop
}

const keptMs = 60_000

/** Saves what is heard as a file; while it is made, the same button stops it. */
export function ExportButton({ stems, song, gains, part }: ExportButtonProps) {
  const [share, setShare] = useState<number>()
  const stop = useRef(new AbortController())
  const { show } = useMessages()
  useEffect(() => () => stop.current.abort(), [])
  const isSilent = Object.values(gains).every((gain) => gain === 0)

  const run = async () => {
    stop.current = new AbortController()
    const { signal } = stop.current
    setShare(0)
    try {
      const file = await exportMix(stems, { volumes: gains, ...part, signal, onProgress: setShare })
      const url = URL.createObjectURL(file)
      saveLink(url, `${song} - mix.wav`)
      setTimeout(() => URL.revokeObjectURL(url), keptMs)
      show({ text: 'The mix is saved.' })
    } catch (error) {
      if (!signal.aborted) show({ text: explain(error).text })
    } finally {
      setShare(undefined)
    }
  }

  return (
    <button
      type="button"
      disabled={isSilent && share === undefined}
      onClick={() => (share === undefined ? void run() : stop.current.abort())}
    >
      {share === undefined ? 'Export this mix' : `Stop the export (${Math.floor(share * 100)} %)`}
    </button>
  )
}
