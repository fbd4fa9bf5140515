import type { RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Button } from '../elements/button.js'
import type { IssuedKey } from '../../client/client.js'
import { copyText } from '../elements/copy-text.js'
import { useMessages } from '../elements/messages.js'
import { linkOfKey } from '../session/session-requests.js'

/** A new key, and a link that signs in with it: to copy, and to scan with a phone. */
export function MadeKey({ made: { key }, onError }: { made: IssuedKey; onError(error: unknown): void }) {
  const { show } = useMessages()
  const [link, setLink] = useState<string>()
  const shownKey = useRef<HTMLPreElement>(null)
  const shownLink = useRef<HTMLPreElement>(null)
  const copy = (shown: RefObject<HTMLElement | null>) => void copyText(shown.current).then((text) => show({ text }))
  useEffect(() => {
    if (link !== undefined) copy(shownLink)
  }, [link])
  return (
    <section class="card made-key" aria-label="The new key">
      <p>
        <strong>Copy the key now. It will not be shown again.</strong>
      </p>
      <pre ref={shownKey} tabIndex={0}>
        {key}
      </pre>
      {link !== undefined && (
        <>
          <p class="quiet">This link signs in once, within a day. A phone can scan it.</p>
          <pre ref={shownLink} tabIndex={0}>
            {link}
          </pre>
          <QrPicture text={link} />
        </>
      )}
      <p class="buttons">
        <Button onClick={() => copy(shownKey)}>Copy key</Button>
        <Button onClick={() => (link === undefined ? void linkOfKey(key).then(setLink, onError) : copy(shownLink))}>
          Copy sign-in link
        </Button>
      </p>
    </section>
  )
}

const modulePixels = 4
/** Light margin around the code, in modules: readers need it. */
const margin = 4

function QrPicture({ text }: { text: string }) {
  const canvas = useRef<HTMLCanvasElement>(null)
  useEffect(() => {
    void import('./qr-code.js').then(({ qrCode }) => {
      const code = qrCode(text)
      const context = canvas.current?.getContext('2d')
      if (!canvas.current || !context) return
      canvas.current.width = canvas.current.height = (code.length + 2 * margin) * modulePixels
      context.fillStyle = '#fff'
      context.fillRect(0, 0, canvas.current.width, canvas.current.height)
      context.fillStyle = '#000'
      code.forEach((row, y) =>
        row.forEach((isDark, x) => {
          if (isDark)
            context.fillRect((x + margin) * modulePixels, (y + margin) * modulePixels, modulePixels, modulePixels)
        }),
      )
    })
  }, [text])
  return <canvas ref={canvas} class="qr" role="img" aria-label="The sign-in link as a QR code" />
}
