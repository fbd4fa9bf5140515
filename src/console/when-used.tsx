import type { ComponentType, VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { ErrorNotice } from './elements/error-notice.js'
import { unreachable } from './words/first-words.js'

/** Pause before retrying a failed load that no button can repeat. */
const retryMs = 5000

/**
 * A component whose script is loaded when it is first shown.
 *
 * @param place placeholder until then; with one, a failed load is retried by itself
 */
export function whenUsed<Props extends object>(
  pick: (parts: typeof import('./later.js')) => ComponentType<Props>,
  place?: VNode,
): ComponentType<Props> {
  let known: ComponentType<Props> | undefined
  return function WhenUsed(props) {
    const [Part, setPart] = useState(() => known)
    const [isLost, setLost] = useState(false)
    const attempt = () => {
      setLost(false)
      import('./later.js').then(
        (parts) => {
          known = pick(parts)
          setPart(() => pick(parts))
        },
        () => (place ? setTimeout(attempt, retryMs) : setLost(true)),
      )
    }
    useEffect(() => {
      if (!known) attempt()
    }, [])
    if (Part) return <Part {...props} />
    if (place) return place
    if (!isLost) return <p class="quiet">Loading …</p>
    return <ErrorNotice problem={{ text: unreachable }} onAgain={attempt} />
  }
}
