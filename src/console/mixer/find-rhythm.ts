import { trustedScript } from '../../browser/trusted-script.js'
import type { PlayerTrack } from '../player/player.js'
import { type AnalysisReport, rhythmOf, type SongRhythm } from '../player/rhythm.js'

/** The song, block by block through the port, which requests each one; `undefined` marks the end. */
export interface ToAnalysis {
  sampleRate: number
  blocks: MessagePort
}

export type FromAnalysis = { kind: 'found'; report: AnalysisReport } | { kind: 'failed'; reason: string }

const blockSeconds = 5

/** Analyzes the sum of the tracks in a worker, by the code of `service/analyze`. */
export async function findRhythm(
  tracks: readonly PlayerTrack[],
  { signal, onProgress }: { signal: AbortSignal; onProgress(share: number): void },
): Promise<SongRhythm> {
  const address = new URL('device/analysis-worker.js', import.meta.url).href
  const worker = new Worker(trustedScript(address), { type: 'module' })
  const { port1, port2 } = new MessageChannel()
  try {
    return await new Promise<SongRhythm>((resolve, reject) => {
      const sampleRate = tracks[0]?.source.sampleRate ?? 0
      const frames = Math.max(...tracks.map(({ source }) => source.frames))
      const count = blockSeconds * sampleRate
      let frame = 0
      const send = async () => {
        if (frame >= frames) return port1.postMessage(undefined)
        const plane = await monoSum(tracks, { frame, count: Math.min(count, frames - frame), signal })
        frame += plane.length
        onProgress(frame / frames)
        port1.postMessage(plane, [plane.buffer])
      }
      port1.onmessage = () => void send().catch(reject)
      worker.onerror = () => reject(new Error('The worker of the analysis could not be loaded.'))
      worker.onmessage = ({ data }: MessageEvent<FromAnalysis>) =>
        data.kind === 'found' ? resolve(rhythmOf(data.report)) : reject(new Error(data.reason))
      signal.addEventListener('abort', () => reject(signal.reason as Error))
      worker.postMessage({ sampleRate, blocks: port2 } satisfies ToAnalysis, [port2])
    })
  } finally {
    worker.terminate()
    port1.close()
  }
}

async function monoSum(
  tracks: readonly PlayerTrack[],
  { frame, count, signal }: { frame: number; count: number; signal: AbortSignal },
): Promise<Float32Array<ArrayBuffer>> {
  const read = await Promise.all(tracks.map(({ source }) => source.read(frame, count, signal)))
  const sum = new Float32Array(count)
  for (const planes of read)
    for (const plane of planes) plane.forEach((sample, at) => (sum[at] = (sum[at] ?? 0) + sample / planes.length))
  return sum
}
