import type { ComponentType, VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { ErrorNotice } from './error-notice.js'

/**
 * A component whose script is loaded when it is shown first.
 *
 * @param place what stands in for it until then, or for good where it is no more than an ornament
 */
export function whenUsed<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
  place?: VNode,
): ComponentType<Props> {
  let known: ComponentType<Props> | undefined
  return function WhenUsed(props) {
    const [Part, setPart] = useState(() => known)
    const [isLost, setLost] = useState(false)
    const attempt = () => {
      setLost(false)
      load().then(
        (loaded) => {
          known = loaded
          setPart(() => loaded)
        },
        () => setLost(true),
      )
    }
    useEffect(() => {
      if (!known) attempt()
    }, [])
    if (Part) return <Part {...props} />
    if (place) return place
    if (!isLost) return <p class="quiet">Loading …</p>
    return (
      <ErrorNotice problem={{ text: 'This part of the page could not be loaded. Check your connection.' }}>
        <button type="button" onClick={attempt}>
          Try again
        </button>
      </ErrorNotice>
    )
  }
}
