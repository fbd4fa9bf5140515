import { useEffect, useState } from 'preact/hooks'

/**
 * What is answered, undefined until then. Asks anew when one of the inputs has changed.
 *
 * @param onError without it, there is no answer and that is all
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
