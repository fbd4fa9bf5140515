import { useEffect, useRef } from 'preact/hooks'
import { Button } from '../elements/button.js'
import { canSeparate } from '../../browser/can-separate.js'
import { unreachable } from '../words/first-words.js'
import { useMessages } from '../elements/messages.js'

/** The script that separates, loaded with the first song. */
let separation: typeof import('./on-device.js') | undefined

/** Separates within the page, where the browser can. */
export function OnDeviceChoice() {
  const { show } = useMessages()
  const list = useRef<HTMLUListElement>(null)
  useEffect(() => {
    if (list.current) separation?.showSongs(list.current)
  }, [])
  if (!canSeparate()) return null

  const choose = () => {
    const input = Object.assign(document.createElement('input'), { type: 'file', multiple: true })
    const separateChosen = async () => {
      separation = await import('./on-device.js')
      if (list.current) separation.separateSongs(input.files ?? [], list.current, show)
    }
    input.onchange = () => separateChosen().catch(() => show({ text: unreachable }))
    input.click()
  }
  return (
    <div class="on-device">
      <div class="flow">
        <Button onClick={choose}>Separate on this device</Button>
        <div class="quiet small">Nothing is uploaded.</div>
      </div>
      <ul ref={list} class="rows songs" />
    </div>
  )
}
