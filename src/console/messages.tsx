import { createContext, type ComponentChildren } from 'preact'
import { useCallback, useContext, useMemo, useRef, useState } from 'preact/hooks'

interface Toast {
  text: string
  action?: { label: string; run(): void }
  /** It stays until it is answered. */
  isLasting?: boolean
}

interface Messages {
  /** Tells screen readers something that others see. */
  announce(text: string): void
  /** Shows and announces it for some seconds. */
  show(toast: Toast): void
  hide(): void
}

const MessagesContext = createContext<Messages>({ announce() {}, show() {}, hide() {} })

export function useMessages(): Messages {
  return useContext(MessagesContext)
}

/** As long as a deletion can be taken back. */
export const toastMs = 8000

/** The one place where the page speaks up by itself. */
export function MessageBoard({ children }: { children: ComponentChildren }) {
  const [spoken, setSpoken] = useState('')
  const [toast, setToast] = useState<Toast>()
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const announce = useCallback((text: string) => {
    // Emptied first: the same text twice is news twice.
    setSpoken('')
    setTimeout(() => setSpoken(text), 50)
  }, [])
  const hide = useCallback(() => {
    clearTimeout(timer.current)
    setToast(undefined)
  }, [])
  const show = useCallback(
    (next: Toast) => {
      clearTimeout(timer.current)
      setToast(next)
      announce(next.text)
      if (!next.isLasting) timer.current = setTimeout(() => setToast(undefined), toastMs)
    },
    [announce],
  )
  const messages = useMemo(() => ({ announce, show, hide }), [announce, show, hide])
  return (
    <MessagesContext.Provider value={messages}>
      {children}
      <p class="hidden" role="status" aria-live="polite">
        {spoken}
      </p>
      {toast && (
        <section class="toast" aria-label="Message">
          <span>{toast.text}</span>
          {toast.action && (
            <button
              type="button"
              onClick={() => {
                hide()
                toast.action?.run()
              }}
            >
              {toast.action.label}
            </button>
          )}
          {toast.isLasting && (
            <button type="button" onClick={hide}>
              Not now
            </button>
          )}
        </section>
      )}
    </MessagesContext.Provider>
  )
}
