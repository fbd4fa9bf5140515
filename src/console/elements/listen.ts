type Listeners = { [Type in keyof WindowEventMap]?: (event: WindowEventMap[Type]) => unknown }

/** Listens to events until the function that it returns is called. */
export function listen(target: EventTarget, listeners: Listeners): () => void {
  const heard = new AbortController()
  for (const [type, listener] of Object.entries(listeners))
    target.addEventListener(type, listener as EventListener, { signal: heard.signal })
  return () => heard.abort()
}
