import { useEffect, useState } from 'preact/hooks'

/**
 * Result of a request, undefined until it arrives. Repeats the request when an input has changed.
 *
 * @param onError without it, errors are ignored
 */
export function useAnswer<Answer>(
  ask: (signal: AbortSignal) => Promise<Answer> | undefined,
  inputs: readonly unknown[],
  onError?: (error: unknown) => void,
): Answer | undefined {
  const [answer, setAnswer] = useState<Answer>()
  useEffect(() => {
    const stop = new AbortController()
    const { signal } = stop
    setAnswer(undefined)
    ask(signal)?.then(
      (found) => signal.aborted || setAnswer(() => found),
      (error: unknown) => signal.aborted || onError?.(error),
    )
    return () => stop.abort()
  }, inputs)
  return answer
}
