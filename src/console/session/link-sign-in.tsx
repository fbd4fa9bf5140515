import { Button } from '../elements/button.js'

interface LinkSignInProps {
  /** Application that the link signs in to. */
  application: string
  /** Application that is signed in already. */
  current: string | undefined
  onAccept(): void
  onCancel(): void
}

/** Asks before a link signs in: a person who follows a planted link would send songs to somebody else. */
export function LinkSignIn({ application, current, onAccept, onCancel }: LinkSignInProps) {
  return (
    <form
      class="card sign-in"
      onSubmit={(event) => {
        event.preventDefault()
        onAccept()
      }}
    >
      <h1>Sign in to “{application}”?</h1>
      <p class="quiet">
        This link signs you in, once. Everybody with a key of “{application}” can see and delete what you send there.
        Continue only if you trust the person who gave you the link.
      </p>
      {current !== undefined && (
        <p>
          You are signed in to “{current}”. In all tabs, “{application}” takes its place.
        </p>
      )}
      <p class="buttons">
        <button type="submit" class="main">
          Sign in
        </button>
        <Button onClick={onCancel}>Cancel</Button>
      </p>
    </form>
  )
}
