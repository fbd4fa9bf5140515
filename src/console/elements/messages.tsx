import { createContext, type ComponentChildren } from 'preact'
import { useContext, useMemo, useRef, useState } from 'preact/hooks'
import { Button } from './button.js'

interface Toast {
  text: string
  action?: { label: string; run(): void }
  /** Whether the toast stays until it is answered. */
  isLasting?: boolean
}

export interface Messages {
  /** Tells screen readers what other people see. */
  announce(text: string): void
  /** Shows a toast for some seconds, and announces it. */
  show(toast: Toast): void
  /** Takes all messages off the page. */
  clear(): void
}

// The whole page is within the board.
const MessagesContext = createContext({} as Messages)

export function useMessages(): Messages {
  return useContext(MessagesContext)
}

/** How long a toast is shown, and a deletion can be undone. */
export const toastMs = 8000

/**
 * Shows the messages of the page. News does not replace a toast that stays, or that can be answered, for example by
 * "Undo".
 */
export function MessageBoard({ children }: { children: ComponentChildren }) {
  const [spoken, setSpoken] = useState('')
  const [news, showNews, hideNews] = useToast()
  const [question, ask, hideQuestion] = useToast()
  const messages = useMemo<Messages>(() => {
    const announce = (text: string) => {
      // Emptied first: otherwise the same text would not be announced twice.
      setSpoken('')
      setTimeout(() => setSpoken(text), 50)
    }
    return {
      announce,
      show(toast) {
        const place = toast.action || toast.isLasting ? ask : showNews
        place(toast)
        announce(toast.text)
      },
      clear() {
        hideNews()
        hideQuestion()
        announce('')
      },
    }
  }, [])
  return (
    <MessagesContext.Provider value={messages}>
      {children}
      <p class="hidden" role="status" aria-live="polite">
        {spoken}
      </p>
      {(news ?? question) && (
        <section class="toasts screen" aria-label="Messages">
          {news && <ToastCard toast={news} onHide={hideNews} />}
          {question && <ToastCard toast={question} onHide={hideQuestion} />}
        </section>
      )}
    </MessagesContext.Provider>
  )
}

function ToastCard({ toast: { text, action, isLasting }, onHide }: { toast: Toast; onHide(): void }) {
  return (
    <div class="toast">
      <span>{text}</span>
      {action && (
        <Button
          onClick={() => {
            onHide()
            action.run()
          }}
        >
          {action.label}
        </Button>
      )}
      {isLasting && <Button onClick={onHide}>Dismiss</Button>}
    </div>
  )
}

function useToast() {
  const [toast, setToast] = useState<Toast>()
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const hide = () => {
    clearTimeout(timer.current)
    setToast(undefined)
  }
  const show = (next: Toast) => {
    clearTimeout(timer.current)
    setToast(next)
    if (!next.isLasting) timer.current = setTimeout(hide, toastMs)
  }
  return [toast, show, hide] as const
}
