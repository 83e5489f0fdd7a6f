// Narrow: a table that would scroll, or break names of code, becomes a block for each row, in which every cell says which column it is of (book.css).
(() => {
    const ROLES = { TABLE: "table", THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TH: "columnheader", TD: "cell" };
    const NOTHING = ["", "-", "–"];
    const narrow = matchMedia("(max-width: 600px)");
    const wrappers = Array.from(document.querySelectorAll(".content .table-wrapper"));

    function prepare(table) {
        const columns = Array.from(table.tHead?.rows[0]?.cells ?? [], (head) => head.textContent.trim());
        for (const body of table.tBodies)
            for (const row of body.rows)
                Array.from(row.cells).forEach((cell, place) => {
                    cell.dataset.column = columns[place] ?? "";
                    if (NOTHING.includes(cell.textContent.trim())) cell.dataset.nothing = "";
                });
        // Blocks are not read out as a table unless they are called so.
        for (const part of [table, ...table.querySelectorAll("thead, tbody, tr, th, td")])
            part.setAttribute("role", ROLES[part.tagName]);
    }

    // Of three columns or more, none may be so narrow that names of code break: two have room.
    function isSqueezed(wrapper) {
        const columns = wrapper.querySelectorAll("th").length;
        wrapper.classList.toggle("whole-names", columns > 2);
        const squeezed = wrapper.scrollWidth > wrapper.clientWidth;
        wrapper.classList.remove("whole-names");
        return squeezed;
    }

    function fit() {
        for (const wrapper of wrappers) wrapper.classList.remove("stacked");
        if (!narrow.matches) return;
        for (const wrapper of wrappers.filter(isSqueezed)) wrapper.classList.add("stacked");
    }

    for (const wrapper of wrappers) wrapper.querySelectorAll("table").forEach(prepare);
    fit();
    // Once more with the fonts and pictures that change widths.
    addEventListener("load", fit);
    addEventListener("resize", fit);
})();
