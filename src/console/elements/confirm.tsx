import { useRef, useState } from 'preact/hooks'
import { Button } from './button.js'

interface ConfirmProps {
  /** Label of the button that opens the question. */
  label: string
  /** The name of that button for screen readers, where the label says too little. */
  name?: string
  buttonClass?: string
  title: string
  text: string
  /** Label of the button that confirms. Default: `label`. */
  action?: string
  isDanger?: boolean
  onConfirm(): Promise<void>
}

/** A button that asks before it acts. */
export function Confirm({ label, name, buttonClass, title, text, action = label, isDanger, onConfirm }: ConfirmProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [isBusy, setBusy] = useState(false)
  return (
    <>
      <Button
        class={buttonClass ?? (isDanger ? 'danger' : '')}
        aria-label={name}
        onClick={() => dialog.current?.showModal()}
      >
        {label}
      </Button>
      <dialog ref={dialog} aria-label={title}>
        <h2>{title}</h2>
        <p>{text}</p>
        <div class="buttons">
          <Button autofocus onClick={() => dialog.current?.close()}>
            Back
          </Button>
          <Button
            class={isDanger ? 'danger' : 'main'}
            disabled={isBusy}
            onClick={() => {
              setBusy(true)
              void onConfirm().finally(() => {
                setBusy(false)
                dialog.current?.close()
              })
            }}
          >
            {action}
          </Button>
        </div>
      </dialog>
    </>
  )
}
