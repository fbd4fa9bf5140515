import { Button } from './button.js'
import type { Explanation } from '../words/first-words.js'

interface ErrorNoticeProps {
  problem: Explanation
  /** What can be done about it, and the label of its button. */
  onAgain?(): void
  label?: string
}

/** Tells a person what went wrong. Screen readers announce it at once. */
export function ErrorNotice({ problem, onAgain, label = 'Try again' }: ErrorNoticeProps) {
  return (
    <div class="problem" role="alert">
      <p>{problem.text}</p>
      {problem.detail && (
        <details>
          <summary>What the service said</summary>
          <p class="quiet">{problem.detail}</p>
        </details>
      )}
      {onAgain && <Button onClick={onAgain}>{label}</Button>}
    </div>
  )
}
