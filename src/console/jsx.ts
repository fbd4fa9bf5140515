/** Factories for the build's JSX: smaller than calls of `jsx()`. */
export { Fragment, h } from 'preact'
