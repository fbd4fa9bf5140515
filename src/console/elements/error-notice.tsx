import { Button } from './button.js'
import type { Explanation } from '../words/first-words.js'

interface ErrorNoticeProps {
  problem: Explanation
  /** Remedy that a button offers, and the button's label. */
  onAgain?(): void
  label?: string
}

/** Shows a problem. Screen readers announce it at once. */
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
