import type { ComponentChildren } from 'preact'
import type { Explanation } from './first-words.js'

/** Tells a person what went wrong. Screen readers announce it at once. */
export function ErrorNotice({ problem, children }: { problem: Explanation; children?: ComponentChildren }) {
  return (
    <div class="problem" role="alert">
      <p>{problem.text}</p>
      {problem.detail && (
        <details>
          <summary>What the service said</summary>
          <p class="quiet">{problem.detail}</p>
        </details>
      )}
      {children}
    </div>
  )
}
