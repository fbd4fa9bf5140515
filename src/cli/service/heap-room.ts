import { PerformanceObserver } from 'node:perf_hooks'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'

const roomBytes = 48 * 1024 * 1024
/**
 * Bounds of the headroom, in percent of the used heap. The maximum is V8's own for a nearly empty heap. The minimum is
 * for a large heap, where each full collection takes long.
 */
const percents = { least: 30, most: 300 }

/**
 * Gives V8's heap about the same headroom between full collections, whatever its size; V8's own rule is a factor. With
 * that factor, upload buffers, which count as heap, cause twenty full collections a second if little is alive, and
 * three quarters of the heap may be garbage if much is.
 */
export function keepHeapRoom(): void {
  const settle = () => setFlagsFromString(`--heap-growing-percent=${growth(getHeapStatistics().used_heap_size)}`)
  settle()
  // Minor collections are much more frequent than full ones, so each full one finds a setting for the present heap.
  new PerformanceObserver(settle).observe({ entryTypes: ['gc'] })
}

/** Headroom in percent, for a heap that holds so many bytes. */
export function growth(heapBytes: number): number {
  const percent = Math.ceil((100 * roomBytes) / heapBytes)
  return Math.min(Math.max(percent, percents.least), percents.most)
}
