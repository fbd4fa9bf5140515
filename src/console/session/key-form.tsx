import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { ErrorNotice } from '../elements/error-notice.js'
import type { Explanation } from '../words/first-words.js'

interface KeyFormProps {
  title: string
  text: string
  /** Label of the key's field. */
  label: string
  problem?: Explanation
  onKey(key: string): void
  /** More fields, between the key and the button. */
  fields?: ComponentChildren
  /** Hint on where to find a key. */
  children: ComponentChildren
}

/** Asks for a key before anything is shown. */
export function KeyForm({ title, text, label, problem, onKey, fields, children }: KeyFormProps) {
  const field = useRef<HTMLInputElement>(null)
  // Before painting: a person may type as soon as the field is visible.
  useLayoutEffect(() => field.current?.focus(), [])
  return (
    <form
      class="card sign-in"
      onSubmit={(event) => {
        event.preventDefault()
        const key = field.current?.value.trim()
        if (key) onKey(key)
      }}
    >
      <h1>{title}</h1>
      <p class="quiet">{text}</p>
      <label class="field">
        {label}
        <input
          ref={field}
          type="password"
          autocomplete="off"
          spellcheck={false}
          required
          aria-invalid={problem !== undefined}
        />
      </label>
      {fields}
      {problem && <ErrorNotice problem={problem} />}
      <button type="submit" class="main">
        Continue
      </button>
      {children}
    </form>
  )
}
