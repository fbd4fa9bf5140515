import type { ComponentProps } from 'preact'

/** A button that submits no form. */
export function Button(props: ComponentProps<'button'>) {
  return <button type="button" {...props} />
}
