import { PerformanceObserver } from 'node:perf_hooks'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'

const roomBytes = 48 * 1024 * 1024
/**
 * Limits of the room, as a share of what the heap holds. The most is V8's own for a heap that is nearly empty. The
 * least is for a large heap, of which each full collection takes long.
 */
const percents = { least: 30, most: 300 }

/**
 * Gives V8's heap about the same room between two full collections, whatever it holds; V8's own rule is a factor. By
 * that rule, if little is alive, the buffers of uploads, which count as heap, cause twenty full collections a second,
 * and if much is alive, three quarters of the heap may be garbage.
 */
export function keepHeapRoom(): void {
  const settle = () => setFlagsFromString(`--heap-growing-percent=${growth(getHeapStatistics().used_heap_size)}`)
  settle()
  // Small collections are much more frequent than full ones: each full one finds a setting for the present heap.
  new PerformanceObserver(settle).observe({ entryTypes: ['gc'] })
}

/** In percent, of a heap that holds so many bytes. */
export function growth(heapBytes: number): number {
  const percent = Math.ceil((100 * roomBytes) / heapBytes)
  return Math.min(Math.max(percent, percents.least), percents.most)
}
